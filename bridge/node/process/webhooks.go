package process

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/pagewire/pagewire/bridge/internal/bearer"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/node/webhook"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// minStoreKey is the least length of the key of the store, in characters: 16 random bytes in
// hexadecimal digits.
const minStoreKey = 32

func (o *Options) webhooks() (*webhook.Options, error) {
	if o.StoreKey == "" {
		return nil, nil
	}
	key, err := secretOf(o.StoreKey, "the key of the store", minStoreKey)
	if err != nil {
		return nil, err
	}
	w := &webhook.Options{Key: key, NoControl: o.NoWebhookControl, Lease: o.lease, Log: o.Log}
	for _, text := range o.WebhookAllow {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, usage("--webhook-allow %q: it must be a network like 10.1.0.0/16", text)
		}
		w.Client.Allow = append(w.Client.Allow, network)
	}
	if o.WebhookCA != "" {
		if w.Client.Roots, err = rootsOf(o.WebhookCA); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// tokenOf is the operator's token for a revoker, which is made of the store's key. It is not the
// key itself: if the node has ended, another program may listen at its address.
func tokenOf(storeKey string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte("revoke webhooks "+storeKey)))
}

// A revoker ends the subscriptions of a user: DELETE /webhooks?tenant=TENANT&subject=SUBJECT. Every
// user of this machine reaches the address, and a browser's pages do; only the operator has the
// token.
type revoker struct {
	webhooks *webhook.Service
	token    string
}

func (p *revoker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tenant, subject := r.FormValue("tenant"), r.FormValue("subject")
	switch {
	case !weborigin.IsLoopback("http://" + r.RemoteAddr):
		http.Error(w, "This is for requests from the node's own machine.", http.StatusForbidden)
		return
	case !bearer.Has(r, p.token):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "Send the operator's token: webhooks.md of the manual makes it of the "+
			"store's key.",
			http.StatusUnauthorized)
		return
	case tenant == "" || subject == "":
		http.Error(w, "Name a tenant and a subject.", http.StatusBadRequest)
		return
	}
	count, err := p.webhooks.Revoke(r.Context(), tickets.UserOf(tenant, subject))
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintf(w, "%d subscriptions have ended\n", count)
}
