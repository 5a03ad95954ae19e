package schemagen

// spelling is how JSON Schema says a rule about the characters of a string. A
// pattern allows what the rule allows, and more only where noted; a format
// alone is a note.
type spelling struct{ pattern, format string }

// spellings uses only what regular expressions mean alike in Go and in
// ECMA-262, which JSON Schema refers to.
var spellings = map[string]spelling{
	"alpha":            {pattern: `^[a-zA-Z]+$`},
	"alphaspace":       {pattern: `^[a-zA-Z ]+$`},
	"alphanum":         {pattern: `^[a-zA-Z0-9]+$`},
	"alphanumspace":    {pattern: `^[a-zA-Z0-9 ]+$`},
	"numeric":          {pattern: `^[-+]?[0-9]+(?:\.[0-9]+)?$`},
	"number":           {pattern: `^[0-9]+$`},
	"hexadecimal":      {pattern: `^(?:0[xX])?[0-9a-fA-F]+$`},
	"ascii":            {pattern: `^[\x00-\x7F]*$`},
	"printascii":       {pattern: `^[ -~]*$`},
	"md5":              {pattern: `^[0-9a-f]{32}$`},
	"sha256":           {pattern: `^[0-9a-f]{64}$`},
	"sha384":           {pattern: `^[0-9a-f]{96}$`},
	"sha512":           {pattern: `^[0-9a-f]{128}$`},
	"ulid":             {pattern: `^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$`},
	"e164":             {pattern: `^\+?[1-9][0-9]{7,14}$`},
	"bic":              {pattern: `^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$`},
	"hostname_rfc1123": {pattern: `^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$`},

	"uuid":         {pattern: `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`, format: "uuid"},
	"uuid_rfc4122": {pattern: `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`, format: "uuid"},
	"uuid4":        {pattern: `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, format: "uuid"},
	"uuid5":        {pattern: `^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, format: "uuid"},
	"uuid7":        {pattern: `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, format: "uuid"},

	// The rules know the codes that exist; the patterns know what codes look like.
	"iso4217":          {pattern: `^[A-Z]{3}$`},
	"iso3166_1_alpha2": {pattern: `^[A-Z]{2}$`},
	"iso3166_1_alpha3": {pattern: `^[A-Z]{3}$`},

	"email":     {format: "email"},
	"url":       {format: "uri"},
	"http_url":  {format: "uri"},
	"https_url": {format: "uri"},
	"uri":       {format: "uri-reference"},
	"ipv4":      {format: "ipv4"},
	"ipv6":      {format: "ipv6"},
}
