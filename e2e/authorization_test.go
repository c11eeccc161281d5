package e2e

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/issuertest"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A login is an authorization server of OAuth 2.1 on loopback, at which every user is alice:
// metadata (RFC 8414), registration (RFC 7591), and the code flow with PKCE (RFC 7636) for a
// resource (RFC 8707).
type login struct {
	server *httptest.Server
	issuer *issuertest.Issuer

	mu    sync.Mutex
	asked []string // paths, in order
}

func openLogin(t *testing.T) *login {
	t.Helper()
	l := &login{}
	codes := map[string]url.Values{} // the parameters of each request for a code
	say := func(w http.ResponseWriter, status int, members map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(members) // on an error the client fails
	}
	l.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.asked = append(l.asked, r.URL.Path)
		at := l.server.URL
		switch r.URL.Path {
		case metadataPath:
			say(w, http.StatusOK,
				map[string]any{"issuer": at, "authorization_endpoint": at + "/authorize",
					"token_endpoint": at + "/token", "registration_endpoint": at + "/register",
					"response_types_supported":              []string{"code"},
					"grant_types_supported":                 []string{"authorization_code"},
					"code_challenge_methods_supported":      []string{"S256"},
					"token_endpoint_auth_methods_supported": []string{"none"}})
		case "/register":
			client := map[string]any{}
			if err := json.NewDecoder(r.Body).Decode(&client); err != nil {
				t.Error(err)
			}
			client["client_id"] = "the client"
			say(w, http.StatusCreated, client)
		case "/authorize":
			asked, code := r.URL.Query(), rand.Text()
			codes[code] = asked
			back := url.Values{"code": {code}, "state": {asked.Get("state")}, "iss": {at}}
			http.Redirect(w, r, asked.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
		case "/token":
			asked, resource := codes[r.PostFormValue("code")], r.PostFormValue("resource")
			delete(codes, r.PostFormValue("code"))
			challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
			if asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(challenge[:]) ||
				r.PostFormValue("client_id") != "the client" || asked.Get("resource") != resource {
				say(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
				return
			}
			text, err := l.issuer.Sign(l.issuer.Claims("alice",
				map[string]any{"aud": resource, "scope": asked.Get("scope")}))
			if err != nil {
				t.Error(err)
			}
			say(w, http.StatusOK,
				map[string]any{"access_token": text, "token_type": "Bearer", "expires_in": 600,
					"scope": asked.Get("scope")})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(l.server.Close)
	return l
}

const metadataPath = "/.well-known/oauth-authorization-server"

// The official TypeScript client, unmodified, knows only the fleet's URL. By 401, the resource's
// metadata and the authorization server's metadata it finds its login, and then its user's open
// pages.
func TestClientThatFindsItsLogin(t *testing.T) {
	t.Parallel()
	l := openLogin(t)
	at := agentsFleet(t, l.server.URL, func(i *issuertest.Issuer) { l.issuer = i })
	script := clientScript(t, "clients/oauth.mjs")
	for _, mode := range []string{"legacy", "modern"} {
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		command := testcmd.CommandContext(ctx, "node", script, mode, at.url)
		command.Env = at.env
		if text, err := command.CombinedOutput(); err != nil || string(text) != "done\n" {
			t.Errorf("%s: %v\n%s", mode, err, text)
		}
		l.mu.Lock()
		asked := slices.DeleteFunc(slices.Clone(l.asked),
			func(path string) bool { return path == metadataPath })
		want := []string{"/register", "/authorize", "/token"}
		if !slices.Equal(asked, want) || l.asked[0] != metadataPath {
			t.Errorf("%s: the login was asked for %v", mode, l.asked)
		}
		l.asked = nil
		l.mu.Unlock()
	}
}
