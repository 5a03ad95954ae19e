package jwt

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
)

// Bounds of claims.
const (
	maxRoles  = 256
	maxGrants = 256
)

// claims are the claims of a token with a valid signature.
type claims map[string]any

// principal validates the claims and returns their principal. Error: Unauthorized.
func (c *Config) principal(payload []byte, now time.Time) (auth.Principal, error) {
	var none auth.Principal
	var in claims
	if err := json.Unmarshal(payload, &in); err != nil {
		return none, auth.Refuse(auth.Malformed, "the token has no valid claims")
	}
	if in["iss"] != c.Issuer {
		return none, auth.Refuse(auth.WrongIssuer, "the token has another issuer")
	}
	taken := func(audience string) bool { return slices.Contains(c.Audience, audience) }
	if audience, ok := in.texts("aud", false); !ok || !slices.ContainsFunc(audience, taken) {
		return none, auth.Refuse(auth.WrongAudience, "the token is not for this audience")
	}
	until, err := c.expiry(in, now)
	if err != nil {
		return none, err
	}
	p := auth.Principal{Tenant: c.Tenant, Proof: auth.Proof{Kind: auth.JWT, By: c.Issuer}, Until: until}
	return p, c.identify(&p, in)
}

// expiry returns the expiry of the token, including the leeway.
func (c *Config) expiry(in claims, now time.Time) (time.Time, error) {
	end, given, ok := in.time("exp")
	if !ok || !given {
		return end, auth.Refuse(auth.BadClaims, `the token has no end (claim "exp")`)
	}
	if end = end.Add(c.Leeway); !now.Before(end) {
		return end, auth.Refuse(auth.Expired, "the token has expired")
	}
	begin, given, ok := in.time("nbf")
	switch {
	case !ok:
		return end, auth.Refuse(auth.BadClaims, `the claim "nbf" of the token is no time`)
	case given && now.Before(begin.Add(-c.Leeway)):
		return end, auth.Refuse(auth.NotYetValid, "the token is not valid yet")
	}
	return end, nil
}

// identify sets the identity and the grants of p.
func (c *Config) identify(p *auth.Principal, in claims) error {
	if c.Claims.Tenant != "" {
		p.Tenant, _ = in.find(c.Claims.Tenant).(string)
	}
	if p.Tenant == "" || transitions.TextProblem(p.Tenant, transitions.MaxTenant) != "" {
		return auth.Refuse(auth.BadClaims, `the claim "`+c.Claims.Tenant+`" of the token names no tenant`)
	}
	p.Actor, _ = in.find(c.Claims.Actor).(string)
	if p.Actor == "" || transitions.TextProblem(p.Actor, transitions.MaxActor) != "" || transitions.ReservedPrefix(p.Actor) != "" {
		return auth.Refuse(auth.BadClaims, `the claim "`+c.Claims.Actor+`" of the token names no actor`)
	}
	roles, ok := in.texts(c.Claims.Roles, true)
	if !ok || len(roles) > maxRoles || slices.ContainsFunc(roles, tooLong) {
		return auth.Refuse(auth.BadClaims, `the claim "`+c.Claims.Roles+`" of the token has no roles, or too many`)
	}
	p.Roles = slices.DeleteFunc(roles, func(role string) bool { return role == transitions.AnyRole }) // reserved
	texts, ok := in.texts(c.Claims.Grants, true)
	if !ok || len(texts) > maxGrants {
		return auth.Refuse(auth.BadClaims, `the claim "`+c.Claims.Grants+`" of the token has no grants, or too many`)
	}
	p.Grants = slices.Clone(c.Grants)
	for _, text := range texts {
		if g, err := auth.ParseGrant(text); err == nil && !slices.Contains(p.Grants, g) {
			p.Grants = append(p.Grants, g)
		}
	}
	return nil
}

func tooLong(role string) bool { return transitions.TextProblem(role, transitions.MaxActor) != "" }

// find returns a claim by its name or its path, or nil.
func (c claims) find(path string) any {
	if found, is := c[path]; is {
		return found
	}
	first, rest, deeper := strings.Cut(path, ".")
	if inside, is := c[first].(map[string]any); deeper && is {
		return claims(inside).find(rest)
	}
	return nil
}

// texts returns a claim that is a list of strings or one string, optionally separated by spaces. It is false for other types. An absent
// claim is an empty list.
func (c claims) texts(path string, blanks bool) (all []string, ok bool) {
	switch found := c.find(path).(type) {
	case nil:
	case string:
		if blanks {
			return strings.Fields(found), true
		}
		return []string{found}, true
	case []any:
		for _, one := range found {
			text, is := one.(string)
			if !is {
				return nil, false
			}
			all = append(all, text)
		}
	default:
		return nil, false
	}
	return all, true
}

// maxTime is the maximum time in a token, in seconds since 1970: the year 9999.
const maxTime = 253402300799

// time returns a claim that is a time. ok is false for other types.
func (c claims) time(name string) (t time.Time, given, ok bool) {
	value, given := c[name]
	if !given {
		return t, false, true
	}
	seconds, is := value.(float64)
	if !is || !(seconds >= 0 && seconds <= maxTime) {
		return t, true, false
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)), true, true
}
