package bearer

import (
	"net/http"
	"testing"
)

func TestHas(t *testing.T) {
	for _, c := range []struct {
		header, token string
		want          bool
	}{
		{"Bearer secret", "secret", true},
		{"bearer  secret ", "secret", true},
		{"Bearer secret", "secret2", false},
		{"Bearer secret2", "secret", false},
		{"Bearer", "secret", false},
		{"Basic secret", "secret", false},
		{"secret", "secret", false},
		{"", "secret", false},
		{"", "", false},
		{"Bearer ", "", false},
	} {
		r := &http.Request{Header: http.Header{"Authorization": {c.header}}}
		if got := Has(r, c.token); got != c.want {
			t.Errorf("%q for the token %q: %v", c.header, c.token, got)
		}
	}
}
