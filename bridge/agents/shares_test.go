package agents

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// as adds a client's name to a request of the modern era.
func as(name, body string) string {
	return strings.Replace(body, `"_meta":{`,
		`"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"`+name+`","version":"1"},`, 1)
}

// full checks that a request was refused because of a bound.
func (r *reply) full(t *testing.T, status int, reason string, limit int, option string) {
	t.Helper()
	m := r.want(status, codeInternal)
	if m.Error == nil || m.Error.Data["reason"] != reason || m.Error.Data["limit"] != float64(limit) ||
		r.Header.Get("Retry-After") == "" {
		t.Fatalf("it is refused with %+v", m.Error)
	}
	if option != "" && (m.Error.Data["option"] != option || !strings.Contains(m.Error.Message, option) ||
		!strings.Contains(m.Error.Message, fmt.Sprint(limit))) {
		t.Errorf("it does not say what to do: %+v", m.Error)
	}
}

// A client that opens 1,024 listens, the bound for all clients together, gets only its share, and others get theirs.
func TestListensOfOneClient(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	held := 0
	for i := range 1024 {
		r := s.ask(as("greedy", listen(fmt.Sprint(i), origin+"/doc")))
		if r.StatusCode != 200 {
			r.full(t, 429, "listen_limit", DefaultShares.Listens, "--max-listens")
			continue
		}
		if m := r.message(); m.Method != "notifications/subscriptions/acknowledged" {
			t.Fatalf("listen %d: %+v", i, m)
		}
		held++
	}
	if held != DefaultShares.Listens {
		t.Errorf("it has %d listens, want %d", held, DefaultShares.Listens)
	}
	for _, name := range []string{"honest", "greedy"} { // both can still read
		if m := s.ask(as(name, call(`"r"`, "resources/read", `"uri":"`+origin+`/doc"`))).want(200,
			0); m.Result == nil || m.Result.Contents[0].Text != "one" {
			t.Errorf("%s reads %+v", name, m)
		}
	}
	s.do("POST", legacyCall("1", "ping", ""), s.beginAs("honest")).want(200, 0)
	watching := s.ask(as("honest", listen(`"h"`, origin+"/doc")))
	if m := watching.message(); m.Method != "notifications/subscriptions/acknowledged" {
		t.Fatalf("another one's listen: %+v", m)
	}
	s.Set(origin+"/doc", "two")
	if m := watching.message(); m.Params.URI != origin+"/doc" {
		t.Errorf("it is told %+v", m)
	}
}

// The listens of all agents together are bounded too, and the error says so.
func TestListensOfAll(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{})
	s.h.shares[ofListens] = quota.New(5, 3)
	for i := range 5 {
		s.ask(as(fmt.Sprint("agent", i/3), listen("1", origin+"/doc"))).message()
	}
	s.ask(as("agent9", listen("1", origin+"/doc"))).full(t, 503, "listen_limit", 5, "")
	s.ask(as("agent9", call("1", "server/discover", ""))).want(200, 0)
}

func TestRequestsOfOneClient(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{Shares: Shares{Requests: 5}})
	session := s.beginAs("greedy")
	var waiting sync.WaitGroup
	for i := range 4 {
		waiting.Go(func() {
			s.ask(as("greedy", call(fmt.Sprint(i), "resources/read", `"uri":"`+origin+`/slow"`))).want(200, 0)
		})
	}
	waiting.Go(func() { // in the other era the same name is the same agent
		s.do("POST", legacyCall("4", "resources/read", `"uri":"`+origin+`/slow"`), session).want(200, 0)
	})
	testkit.Eventually(t, "all five wait", func() bool { return s.h.shares[ofRequests].Held() == 5 })
	s.ask(as("greedy", call(`"more"`, "resources/read", `"uri":"`+origin+`/doc"`))).full(t, 429, "request_limit", 5,
		"--max-requests")
	s.do("POST", legacyCall("5", "ping", ""), session).full(t, 429, "request_limit", 5, "--max-requests")
	// What asks for nothing passes: a cancellation, and an answer.
	for _, message := range []string{`"method":"notifications/cancelled","params":{"requestId":99}`,
		`"id":"asked","result":{}`} {
		if r := s.do("POST", `{"jsonrpc":"2.0",`+message+`}`, session); r.StatusCode != 202 {
			t.Errorf("%s is answered with HTTP %d", message, r.StatusCode)
		}
	}
	s.ask(as("honest", call("1", "resources/read", `"uri":"`+origin+`/doc"`))).want(200, 0)
	close(s.released)
	waiting.Wait()
	testkit.Eventually(t, "they are over", func() bool { return s.h.shares[ofRequests].Held() == 0 })
	s.ask(as("greedy", call("6", "resources/read", `"uri":"`+origin+`/doc"`))).want(200, 0)
}

// A flood of initialize ends the flooder's sessions, and no session that another agent has used.
func TestFloodOfInitialize(t *testing.T) {
	for name, flooder := range map[string]func(int) string{
		"one name":   func(int) string { return "flood" },
		"many names": func(i int) string { return fmt.Sprint("flood", i) },
	} {
		t.Run(name, func(t *testing.T) {
			s := serveHTTP(t, HTTPOptions{})
			s.h.shares[ofSessions] = quota.New(64, 32)
			idle, busy := s.beginAs("honest"), s.beginAs("honest")
			s.do("POST", legacyCall("1", "resources/subscribe", `"uri":"`+origin+`/doc"`), idle).want(200, 0)
			stream := s.do("GET", "", busy)
			for i := range 300 {
				s.do("POST", initialize(flooder(i))).want(200, 0)
			}
			s.do("POST", legacyCall("2", "ping", ""), idle).want(200, 0)
			s.do("POST", legacyCall("2", "ping", ""), busy).want(200, 0)
			stream.cancel()
			s.h.legacy.mu.Lock()
			defer s.h.legacy.mu.Unlock()
			if n := len(s.h.legacy.all); n > 64 {
				t.Errorf("%d sessions are there", n)
			}
		})
	}
}

// If all sessions of a client's share are in use, the next is refused.
func TestSessionsInUse(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{Shares: Shares{Sessions: 3}})
	first, second, third := s.beginAs("a"), s.beginAs("a"), s.beginAs("a")
	for _, session := range []string{second, third} {
		s.do("GET", "", session)
	}
	s.do("POST", legacyCall("1", "ping", ""), first).want(200, 0)
	testkit.Eventually(t, "the first session is idle: its request has returned", func() bool {
		s.h.legacy.mu.Lock()
		defer s.h.legacy.mu.Unlock()
		idle := 0
		for _, session := range s.h.legacy.all {
			if session.requests == 0 {
				idle++
			}
		}
		return idle == 1
	})
	fourth := s.beginAs("a")
	s.do("POST", legacyCall("1", "ping", ""), first).want(404, -32600) // it was idle, so the fourth replaced it
	s.do("GET", "", fourth)
	s.do("POST", initialize("a")).full(t, 429, "session_limit", 3, "--max-sessions")
	s.do("POST", initialize("b")).want(200, 0)
}

// Names may have any length, and a share is at most the bound for all.
func TestShareNames(t *testing.T) {
	s := serveHTTP(t, HTTPOptions{Shares: Shares{Listens: 1 << 30}})
	if full := s.h.shares[ofListens].Take("one", 1025); full == nil || full.Limit != 1024 {
		t.Errorf("1,025 listens: %+v", full)
	}
	s.ask(as(strings.Repeat("é", 10_000), call("1", "server/discover", ""))).want(200, 0)
	s.ask(call("1", "server/discover", ""), "User-Agent: "+strings.Repeat("x", 5000)).want(200, 0)
	testkit.Eventually(t, "no share is left", func() bool {
		return s.h.shares[ofSessions].Held()+s.h.shares[ofListens].Held()+s.h.shares[ofRequests].Held() == 0
	})
}
