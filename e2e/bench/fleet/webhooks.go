//go:build !js

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit/webhooktest"
)

const updated = "page.resource.updated"

// poster returns a function that posts a text by one client, to servers with a certificate of the authority.
func poster(ca []byte) func(url string, text []byte) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	return func(url string, text []byte) {
		if answer, err := client.Post(url, "application/json", bytes.NewReader(text)); err == nil { // or no text comes
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
	}
}

// webhooks measures the time from a change of a page to its webhook at a receiver on loopback. The bare way is a text
// that one NATS server publishes and another posts there.
func webhooks(ctx context.Context, program string) {
	a := webhooktest.New("", "")
	defer a.Close()
	c := startCluster(ctx, program, 2, a.CA)
	defer c.close()
	// A resource has at most one event a second: each of a user's 500 changes is of another resource.
	const count, samples = 900, 2000
	var ours []time.Duration
	for _, user := range []string{"alice", "bob", "carol", "dave"} {
		a.Endpoint, a.Token = "http://"+c.nodes[0].listen+"/mcp", c.login.Token(user, "pages:read pages:events")
		users := func(at int) float64 { return c.nodes[at].metric("pagewire_node_webhook_users") }
		first, second := users(0), users(1)
		subscribed(ctx, a, map[string]any{"minIntervalMs": 1000})
		other := 0 // the node that does not deliver for this user; hashes decide
		eventually("a node delivers", func() bool {
			if users(0) > first {
				other = 1
			}
			return other == 1 || users(1) > second
		})
		p := openPage(ctx, c.nodes[other].listen, c.login.Ticket(user, origin), "tab-of-"+user, uris(count))
		eventually("all is watched", func() bool { return p.watches(count) })
		for n := range samples / 4 {
			time.Sleep(pace)
			began := time.Now()
			p.change(fmt.Sprintf("%s/cart/%d", origin, n%count))
			select {
			case <-a.Events:
			case <-time.After(10 * time.Second):
				check(fmt.Errorf("the receiver had no event of change %d", n))
			}
			ours = append(ours, time.Since(began))
		}
	}
	bare := barePosts(ctx, samples)
	ratios("change to a signed webhook", ours, "NATS and a POST on TLS", bare)
}

// subscribed subscribes, and retries until the store is ready.
func subscribed(ctx context.Context, a *webhooktest.Assistant, arguments map[string]any) {
	eventually("it has subscribed", func() bool {
		_, err := a.Subscribe(ctx, updated, arguments)
		return err == nil
	})
}

// barePosts measures the bare way: the second server posts the first one's publications.
func barePosts(ctx context.Context, samples int) (list []time.Duration) {
	told := make(chan struct{}, 100_000)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusAccepted)
		told <- struct{}{}
	}))
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	withBare(ctx, []string{"BENCH_HOOK=" + s.URL, "BENCH_CA=" + string(ca)}, func(from, _ string) {
		list = barePing(ctx, from, told, samples)
	})
	return list
}

// subscriptions weighs nodes with 10 subscriptions of each of 1,000 users, who have no pages here.
func subscriptions(ctx context.Context, program string) {
	a := webhooktest.New("", "")
	defer a.Close()
	// The collector runs when the heap has grown by a twentieth.
	check(os.Setenv("GOGC", "5"))
	c := startCluster(ctx, program, 2, a.CA)
	defer c.close()
	const users, each = 1000, 10
	by := func(user int) *webhooktest.Assistant {
		return &webhooktest.Assistant{Endpoint: "http://" + c.nodes[user%2].listen + "/mcp", URL: a.URL, Secret: a.Secret,
			Token: c.login.Token("user"+strconv.Itoa(user), "pages:read pages:events")}
	}
	subscribed(ctx, by(0), map[string]any{})
	many := func(do func(user int)) {
		var all sync.WaitGroup
		var failed atomic.Pointer[error]
		next := make(chan int)
		for range 8 {
			all.Go(func() {
				for user := range next {
					if err := attempt(func() { do(user) }); err != nil {
						failed.Store(&err)
					}
				}
			})
		}
		for user := range users {
			next <- user
		}
		close(next)
		if all.Wait(); failed.Load() != nil {
			check(*failed.Load())
		}
	}
	// A user's own memory, with a first subscription, is not weighed.
	many(func(user int) { subscribed(ctx, by(user), map[string]any{"uri": origin + "/cart/first"}) })
	before := c.heap()
	many(func(user int) {
		for _, uri := range uris(each) {
			subscribed(ctx, by(user), map[string]any{"uri": uri})
		}
	})
	used := (c.heap() - before) / users / each / 1024
	row("subscription by webhook, at two nodes", fmt.Sprintf("%.1f KB", used), fmt.Sprintf("%d of %d users", users*each, users), "")
}

// heap returns the sum over all nodes of the least memory in use within 6 s, in bytes.
func (c *cluster) heap() (sum float64) {
	for _, n := range c.nodes {
		least := n.metric("go_memstats_heap_alloc_bytes")
		for range 60 {
			time.Sleep(100 * time.Millisecond)
			least = min(least, n.metric("go_memstats_heap_alloc_bytes"))
		}
		sum += least
	}
	return sum
}
