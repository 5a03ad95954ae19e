package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"path"
)

//go:embed static
var staticFiles embed.FS

// asset is a file that every page uses.
type asset struct {
	media, tag string
	body       []byte
}

var assets = readAssets()

func readAssets() map[string]asset {
	media := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	all := map[string]asset{}
	list, err := staticFiles.ReadDir("static")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, entry := range list {
		body, err := staticFiles.ReadFile("static/" + entry.Name())
		if err != nil {
			panic(err)
		}
		all[entry.Name()] = asset{media[path.Ext(entry.Name())], tagOf(body), body}
	}
	return all
}

// tagOf is the entity tag of what is sent.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}
