package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/workflow"
)

// This file has entity tags and the conditions on them (RFC 9110, section 13). A tag begins with the version of an instance or the
// revision of a command, which If-Match expects. A hash of everything else that an answer depends on follows, so that a tag
// confirms no answer of another tenant, resource or caller.

// tagBytes is how much of a hash a tag has.
const tagBytes = 16

// hashOf hashes texts one by one.
func hashOf(texts ...string) string {
	hash := sha256.New()
	for _, text := range texts {
		hash.Write(strconv.AppendInt(nil, int64(len(text)), 10))
		hash.Write([]byte(":" + text))
	}
	return hex.EncodeToString(hash.Sum(nil)[:tagBytes])
}

// entityTags parses a list of entity tags, each with its quotes and without the mark of a weak one; any reports "*". It reports false for
// a header that is neither.
func entityTags(r *http.Request, header string) (tags []string, any, ok bool) {
	rest := strings.Trim(strings.Join(r.Header.Values(header), ","), " \t")
	if rest == "*" {
		return nil, true, true
	}
	for rest != "" {
		if rest[0] == ',' { // an empty element
			rest = strings.TrimLeft(rest[1:], " \t")
			continue
		}
		text := strings.TrimPrefix(rest, "W/")
		if !strings.HasPrefix(text, `"`) {
			return nil, false, false
		}
		end := strings.IndexByte(text[1:], '"')
		if end < 0 || strings.ContainsAny(text[1:1+end], " \t\x7f") {
			return nil, false, false
		}
		tags = append(tags, text[:end+2])
		if rest = strings.TrimLeft(text[end+2:], " \t"); rest != "" && rest[0] != ',' {
			return nil, false, false
		}
	}
	return tags, false, true
}

// ifMatch returns the version that a command expects, 0 if it expects none. "*" expects only that the instance exists, which a
// transition does anyway. A weak tag counts as a strong one: a proxy that compresses an answer weakens its tag, and the version is the
// same in both. Several tags are accepted if they name one version.
func ifMatch(r *http.Request) (expected int64, err error) {
	tags, any, ok := entityTags(r, headerIfMatch)
	if any || ok && len(tags) == 0 && strings.TrimSpace(r.Header.Get(headerIfMatch)) == "" {
		return 0, nil
	}
	for _, tag := range tags {
		version, is := versionIn(tag)
		if ok = ok && is && (expected == 0 || expected == version); !ok {
			break
		}
		expected = version
	}
	if !ok || expected == 0 {
		return 0, workflow.Errorf(workflow.InvalidRequest,
			`the header If-Match does not name one version: send the ETag of the instance, or its version in quotes, such as "3"`)
	}
	return expected, nil
}

// versionIn returns the version with which a tag begins.
func versionIn(opaque string) (int64, bool) {
	digits, hash, hashed := strings.Cut(strings.Trim(opaque, `"`), ".")
	raw, err := hex.DecodeString(hash)
	if hashed && (err != nil || len(raw) != tagBytes) {
		return 0, false
	}
	version, err := strconv.ParseInt(digits, 10, 64)
	return version, err == nil && version >= 1 && strconv.FormatInt(version, 10) == digits
}

// notModified reports whether the caller has the representation with this tag already, by the weak comparison.
func notModified(r *http.Request, tag string) bool {
	tags, any, ok := entityTags(r, headerNoneMatch)
	return any || ok && slices.Contains(tags, tag)
}

// answerUnmodified sets the entity tag of an answer, and answers with 304 if the caller has it already.
func answerUnmodified(w http.ResponseWriter, r *http.Request, tag string) bool {
	w.Header().Set(headerETag, tag)
	if !notModified(r, tag) {
		return false
	}
	if w.Header().Get(headerCacheControl) == "" {
		w.Header().Set(headerCacheControl, "no-cache")
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

// sendTagged answers with the body, or with 304 if the caller has it already.
func sendTagged(w http.ResponseWriter, r *http.Request, tag string, body []byte) {
	if !answerUnmodified(w, r, tag) {
		send(w, http.StatusOK, mediaJSON, body)
	}
}
