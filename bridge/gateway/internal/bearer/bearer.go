//go:build !js

// Package bearer checks the secrets that others present to the gateway: bearer tokens (RFC 6750, section 2.1), and what
// stands for them. It never says in what a wrong one differs, neither by words nor by the time that it takes.
package bearer

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Has reports whether a request presents token in its Authorization header. Nobody presents an empty one.
func Has(r *http.Request, token string) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && Same(strings.TrimSpace(given), token)
}

// Same reports whether two secrets are one, which an empty one never is. The time it takes says nothing of where, or in
// how many characters, they differ.
func Same(given, want string) bool {
	x, y := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return want != "" && subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
