package process

import (
	"fmt"
	"net/http"
	"net/netip"

	"github.com/pagewire/pagewire/bridge/gateway/fleet/tickets"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/webhook"
	"github.com/pagewire/pagewire/bridge/gateway/weborigin"
)

// minStoreKey is the least length of the key of the store, in characters: 16 random bytes in hexadecimal digits.
const minStoreKey = 32

// webhooks are the options of webhooks, nil where there are none.
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

// revoke ends the subscriptions of a user: DELETE /webhooks?tenant=TENANT&subject=SUBJECT. Metrics may be read from
// other machines; this is for the operator of this one.
func (p *process) revoke(w http.ResponseWriter, r *http.Request) {
	tenant, subject := r.FormValue("tenant"), r.FormValue("subject")
	switch {
	case !weborigin.IsLoopback("http://" + r.RemoteAddr):
		http.Error(w, "This is for requests from the node's own machine.", http.StatusForbidden)
		return
	case tenant == "" || subject == "":
		http.Error(w, "Name a tenant and a subject.", http.StatusBadRequest)
		return
	}
	count, err := p.agents.Webhooks().Revoke(r.Context(), tickets.UserOf(tenant, subject))
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintf(w, "%d subscriptions have ended\n", count)
}

// sayWebhooks says what webhooks count.
func sayWebhooks(s webhook.Stats, say func(name, help, label, of string, value float64)) {
	for _, m := range []struct {
		name, help string
		value      float64
	}{
		{"subscriptions", "Live subscriptions of the fleet.", float64(s.Subscriptions)},
		{"users", "Users for whom this node delivers.", float64(s.Users)},
		{"in_flight", "Deliveries that are under way.", float64(s.InFlight)},
		{"waiting", "Deliveries that wait for room.", float64(s.Waiting)},
		{"suspended", "Endpoints that fail all the time, and are sent nothing until a renewal.", float64(s.Suspended)},
		{"delivered_total", "Events that an endpoint took.", float64(s.Delivered)},
		{"given_up_total", "Events that were given up after all tries.", float64(s.GivenUp)},
		{"dropped_total", "Events that an endpoint answered with 410 or 413.", float64(s.Dropped)},
		{"refused_total", "Subscriptions that a limit has refused.", float64(s.Refused)},
		{"unverified_total", "Endpoints that have not answered the challenge.", float64(s.Unverified)},
	} {
		say("webhook_"+m.name, m.help, "", "", m.value)
	}
	for reason, count := range s.Failed {
		say("webhook_failed_total", "Tries that failed, by reason.", "reason", reason, float64(count))
	}
}
