package service

import (
	"maps"
	"net/http"
	"strings"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/auth/login"
	"github.com/pawlhq/pawl/auth/session"
	"github.com/pawlhq/pawl/console"
)

// NoConsole as Config.Console serves none.
const NoConsole = "off"

// checkConsole refuses a path that cannot be. Error: *usage.Error.
func (c *Config) checkConsole() error {
	if c.Console == NoConsole {
		return nil
	}
	if err := console.CheckPath(c.Console); err != nil {
		return usage.Errorf("the console: %v", err)
	}
	if own, err := onThisMachine(c.Address); err == nil && !own && c.Auth.Login != nil && c.Network.PublicURL == "" {
		return usage.Errorf("signing in to the console at the identity provider needs the address that browsers know this service by; " +
			"give it with --public-url, such as https://pawl.example.com")
	}
	if _, prefix := api.SplitPublicURL(c.Network.PublicURL); strings.HasPrefix(c.Console+"/", prefix+"/") && prefix != "" {
		return usage.Errorf("the path of the public URL, %s, is also the console's: choose another path for the console (--console)", prefix)
	}
	return nil
}

// addConsole serves the console in addition to the API, which it calls in the name of its users.
func (s *Service) addConsole(c *api.Config) error {
	if s.config.Console == NoConsole {
		return nil
	}
	asked := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.api.ServeHTTP(w, r) }) // which is made later
	origin, prefix := api.SplitPublicURL(s.config.Network.PublicURL)
	config := console.Config{API: asked, Sessions: session.New(s.ring), Path: s.config.Console, Origin: origin,
		Prefix: prefix, Local: !s.config.Auth.Configured(), Log: s.config.Log}
	if s.config.Auth.Login != nil {
		provider, err := login.New(*s.config.Auth.Login)
		if err != nil {
			return err
		}
		config.Login = provider
	}
	pages, err := console.New(config)
	if err != nil {
		return err
	}
	routes := map[string]http.Handler{}
	maps.Copy(routes, c.Routes)
	for pattern, h := range pages.Routes() {
		if routes[pattern] != nil {
			return usage.Errorf("the program serves %q itself, where the console is: choose another path for the console (--console)", pattern)
		}
		routes[pattern] = h
	}
	c.Routes = routes
	return nil
}
