// Command envoy checks a configuration of Envoy against Envoy's own schema.
package main

import (
	"fmt"
	"os"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"
)

func main() {
	for _, path := range os.Args[1:] {
		if err := check(path); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

// check reports members that Envoy does not know, and values that it does not accept.
func check(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if text, err = yaml.YAMLToJSONStrict(text); err != nil {
		return err
	}
	var config bootstrap.Bootstrap
	if err := protojson.Unmarshal(text, &config); err != nil {
		return err
	}
	return config.ValidateAll()
}
