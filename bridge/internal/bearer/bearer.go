// Package bearer checks bearer tokens (RFC 6750, section 2.1) and other secrets of the gateway's
// clients. Neither its answers nor its time reveal where a wrong secret differs.
package bearer

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Has reports whether a request has token in its Authorization header. An empty token never
// matches.
func Has(r *http.Request, token string) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && Same(strings.TrimSpace(given), token)
}

// Same reports whether two secrets are equal, in a time independent of their difference. An empty
// one never is.
func Same(given, want string) bool {
	x, y := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return want != "" && subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
