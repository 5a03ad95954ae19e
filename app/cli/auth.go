package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/auth/login"
	"github.com/pawlhq/pawl/client"
)

// variableOfSecret has the secret of HS256.
const variableOfSecret = "PAWL_JWT_SECRET"

// variableOfLogin has the client secret of the service at the identity provider, if it requires one.
const variableOfLogin = "PAWL_LOGIN_SECRET"

// wireAuth is the file of --auth; see docs/access.md.
type wireAuth struct {
	JWT  *wireJWT `json:"jwt"`
	Keys bool     `json:"keys"`

	KeepScheduled bool `json:"keep_scheduled"`
}

type wireJWT struct {
	Issuer     string         `json:"issuer"`
	Audience   []string       `json:"audience"`
	Algorithms []string       `json:"algorithms"`
	JWKS       string         `json:"jwks"`
	File       string         `json:"file"`
	Keys       jsontext.Value `json:"keys"`
	Leeway     string         `json:"leeway"`
	Refresh    string         `json:"refresh"`
	Survive    string         `json:"survive"`
	Tenant     string         `json:"tenant"`
	Claims     wireClaims     `json:"claims"`
	Grants     []string       `json:"grants"`
	Login      *wireLogin     `json:"login"`
}

// wireLogin configures sign-in to the console at the issuer.
type wireLogin struct {
	ClientID  string   `json:"client_id"`
	Discovery string   `json:"discovery"`
	Scopes    []string `json:"scopes"`
}

type wireClaims struct {
	Tenant string `json:"tenant"`
	Actor  string `json:"actor"`
	Roles  string `json:"roles"`
	Grants string `json:"grants"`
}

// authOf reads the file of --auth. An empty path means no authentication.
func authOf(path string) (out service.Auth, err error) {
	if path == "" {
		return out, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return out, usage.Errorf("--auth: %w", err)
	}
	var in wireAuth
	if err := json.Unmarshal(text, &in, json.RejectUnknownMembers(true)); err != nil {
		return out, usage.Errorf("--auth %s: %w", path, err)
	}
	out.KeepScheduled = in.KeepScheduled
	if out.Keys = in.Keys; in.JWT != nil {
		if out.JWT, err = in.JWT.config(); err != nil {
			return out, usage.Errorf("--auth %s: %w", path, err)
		}
		if l := in.JWT.Login; l != nil {
			out.Login = &login.Config{Issuer: in.JWT.Issuer, ClientID: l.ClientID, ClientSecret: os.Getenv(variableOfLogin),
				Discovery: l.Discovery, Scopes: l.Scopes}
		}
	}
	if !out.Configured() {
		return out, usage.Errorf(`--auth %s: it has no "jwt" and no "keys", so no credential would be accepted`, path)
	}
	return out, nil
}

func (in *wireJWT) config() (*jwt.Config, error) {
	c := &jwt.Config{Issuer: in.Issuer, Audience: in.Audience, Algorithms: in.Algorithms, JWKS: in.JWKS, File: in.File, Keys: in.Keys,
		Tenant: in.Tenant, Claims: jwt.Claims(in.Claims)}
	if secret := os.Getenv(variableOfSecret); secret != "" {
		c.Secret = []byte(secret)
	} else if slices.Contains(in.Algorithms, "HS256") {
		return nil, fmt.Errorf("HS256 needs the secret in %s, which is not set", variableOfSecret)
	}
	for name, d := range map[string]struct {
		text string
		into *time.Duration
	}{"leeway": {in.Leeway, &c.Leeway}, "refresh": {in.Refresh, &c.Refresh}, "survive": {in.Survive, &c.Survive}} {
		if d.text == "" {
			continue
		}
		var err error
		if *d.into, err = time.ParseDuration(d.text); err != nil || *d.into < 0 {
			return nil, fmt.Errorf("%q is not a duration such as \"30s\": %q", name, d.text)
		}
		if *d.into == 0 && name == "leeway" {
			*d.into = -1 // none; 0 is the default
		}
	}
	for _, text := range in.Grants {
		g, err := auth.ParseGrant(text)
		if err != nil {
			return nil, err
		}
		c.Grants = append(c.Grants, g)
	}
	return c, nil
}

// defaultServer is the default of --server.
const defaultServer = "http://" + service.DefaultAddress

func canICommand() *cobra.Command {
	var asked client.Config
	var asJSON bool
	c := &cobra.Command{
		Use:   "can-i GRANT",
		Short: "Check whether a credential has a grant",
		Long: `Check whether the credential in PAWL_TOKEN has a grant. Without PAWL_TOKEN the request
has no credential. A grant is a right with an optional target: read, submit:order/pay,
read:order#A-17, stream:@INSTANCE.

On Linux, SSL_CERT_FILE names a file with additional certificate authorities.`,
		Args: flags.Operands("GRANT"),
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := auth.ParseGrant(args[0]); err != nil {
				return &usage.Error{Err: err}
			}
			if c.Flag(flagDatabase).Changed {
				return usage.Errorf("--database: only a server checks a credential; access to the database includes all rights")
			}
			return canI(c, asked, args[0], asJSON)
		},
	}
	flags.Servers(c, &asked.URLs, &asked.PlainHTTP, defaultServer)
	flags.Output(c, &asJSON)
	return c
}

func canI(c *cobra.Command, asked client.Config, grant string, asJSON bool) error {
	asked.Retry.Attempts = 1
	asking, err := flags.Dial(asked)
	if err != nil {
		return err
	}
	defer asking.Close()
	me, err := asking.Me(c.Context(), grant)
	switch {
	case err != nil:
		return flags.AnsweredByServer(c, err)
	case me.Can == nil:
		return fmt.Errorf("%s does not answer as a server of Pawl", strings.Join(asked.URLs, ","))
	}
	err = output.Print(c, asJSON, &me, func(w io.Writer) error { return tell(w, &me) })
	if err == nil && !me.Can.Allowed {
		err = fmt.Errorf("no, not %s: %s", me.Can.Grant, me.Can.Why)
	}
	return err
}

// tell prints the caller and its grant.
func tell(w io.Writer, me *client.Me) error {
	proof := strings.TrimSpace(string(me.Proof.Kind) + " " + me.Proof.By)
	until := ""
	if !me.Until.IsZero() {
		until = " until " + me.Until.Format(time.RFC3339)
	}
	text := fmt.Sprintf("%s of %s (%s) has the grants %s%s\n", me.Actor, me.Tenant, proof, strings.Join(me.Grants, " "), until)
	if me.Can.Allowed {
		text += fmt.Sprintf("yes, %s: by %s\n", me.Can.Grant, me.Can.Why)
	}
	_, err := io.WriteString(w, text)
	return err
}

func rotateTicketsCommand() *cobra.Command {
	var drop, asJSON bool
	c := &cobra.Command{
		Use:   "rotate",
		Short: "Sign tickets with a new key",
		Long: `Sign tickets with a new key. Nodes rotate the key daily. Existing tickets stay valid
until they expire.

With --drop all other keys are removed, and all existing tickets and their streams end
within five seconds. Use it if the database or a backup was disclosed.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config := configOf(c, slog.LevelWarn)
			if err := service.RotateTicketKeys(c.Context(), config, drop); err != nil {
				return err
			}
			return output.Print(c, asJSON, map[string]bool{"rotated": true, "dropped": drop}, func(w io.Writer) error {
				text := "tickets are signed with a new key"
				if drop {
					text += ", and all others are removed"
				}
				_, err := fmt.Fprintln(w, text)
				return err
			})
		},
	}
	flags.Output(c, &asJSON)
	c.Flags().BoolVar(&drop, "drop", false, "remove all other keys, which ends all existing tickets")
	return c
}
