package proof

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// A pipe is one end of a channel of messages. It keeps the messages that it has sent.
type pipe struct {
	in, out chan []byte
	said    []string
}

func pipes() (*pipe, *pipe) {
	a, b := make(chan []byte, 10), make(chan []byte, 10)
	return &pipe{in: a, out: b}, &pipe{in: b, out: a}
}

func (p *pipe) Read(ctx context.Context) ([]byte, error) {
	select {
	case text, ok := <-p.in:
		if !ok {
			return nil, io.EOF
		}
		return text, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipe) Write(_ context.Context, text []byte) error {
	p.said = append(p.said, string(text))
	p.out <- text
	return nil
}

const secret, where = "0123456789abcdef0123456789abcdef", "127.0.0.1:7433"

// accept is a gateway's side. It reads the hello, as callers of Accept do.
func accept(t *testing.T, p *pipe, secret, where string) <-chan error {
	done := make(chan error, 1)
	go func() {
		hello, err := p.Read(t.Context())
		if err == nil {
			err = Accept(t.Context(), p, hello, secret, where)
		}
		if err != nil {
			close(p.out) // like a closed connection
		}
		done <- err
	}()
	return done
}

func TestBothProveThemselves(t *testing.T) {
	client, gateway := pipes()
	accepted := accept(t, gateway, secret, where)
	if err := testkit.Prove(t.Context(), client, secret, where); err != nil {
		t.Errorf("the client: %v", err)
	}
	if err := testkit.Receive(t, "the gateway decides", accepted); err != nil {
		t.Errorf("the gateway: %v", err)
	}
	for _, text := range append(client.said, gateway.said...) {
		if strings.Contains(text, secret) {
			t.Errorf("the secret was said: %s", text)
		}
	}
}

// Neither end sends a proof that is useful without the secret. The connecting end sends no proof at all.
func TestWhoDoesNotKnowTheSecret(t *testing.T) {
	for name, c := range map[string]struct{ clientSecret, clientWhere, gatewaySecret, gatewayWhere string }{
		"the client lacks it":        {"x" + secret[1:], where, secret, where},
		"the gateway lacks it":       {secret, where, "x" + secret[1:], where},
		"the gateway has none":       {secret, where, "", where},
		"neither has one":            {"", where, "", where},
		"all is passed on elsewhere": {secret, where, secret, "127.0.0.1:7434"},
	} {
		t.Run(name, func(t *testing.T) {
			client, gateway := pipes()
			accepted := accept(t, gateway, c.gatewaySecret, c.gatewayWhere)
			if err := testkit.Prove(t.Context(), client, c.clientSecret, c.clientWhere); err == nil {
				t.Error("the client believes it")
			}
			close(client.out)
			if err := testkit.Receive(t, "the gateway decides", accepted); err == nil {
				t.Error("the gateway believes it")
			}
			if c.clientSecret == "" {
				return
			}
			if len(client.said) != 1 || !strings.HasPrefix(client.said[0], `{"type":"pagewire:hello","nonce":"`) {
				t.Errorf("the client said more than hello: %v", client.said)
			}
		})
	}
}

// A gateway's proof is useless towards another connection, and towards the gateway itself.
func TestProofsThatAreRepeated(t *testing.T) {
	answer := func(hello string) (note, *pipe, <-chan error) {
		client, gateway := pipes()
		accepted := accept(t, gateway, secret, where)
		client.Write(t.Context(), []byte(hello))
		text, err := client.Read(t.Context())
		var n note
		if err != nil || json.Unmarshal(text, &n) != nil || !strings.HasPrefix(string(text), `{"type":"pagewire:`) {
			t.Fatalf("%s, %v", text, err)
		}
		return n, client, accepted
	}
	hello := `{"type":"pagewire:hello","nonce":"` + nonce() + `"}`
	first, client, accepted := answer(hello)
	client.Write(t.Context(), []byte(`{"type":"pagewire:proof","proof":"`+first.Proof+`"}`))
	if err := testkit.Receive(t, "the gateway decides", accepted); !errors.Is(err, ErrNotProved) {
		t.Errorf("its own proof, sent back: %v", err)
	}
	good := mac(secret, "client", where, "x", first.Nonce)
	second, client, accepted := answer(hello)
	if second.Nonce == first.Nonce {
		t.Error("a nonce came twice")
	}
	client.Write(t.Context(), []byte(`{"type":"pagewire:proof","proof":"`+good+`"}`))
	if err := testkit.Receive(t, "the gateway decides", accepted); !errors.Is(err, ErrNotProved) {
		t.Errorf("a proof for another nonce: %v", err)
	}
}

func TestHellosThatAreNone(t *testing.T) {
	for _, hello := range []string{"", "{", "null", "7", `{"type":"pagewire:page"}`, `{"type":"pagewire:hello"}`,
		`{"type":"pagewire:hello","nonce":7}`,
		`{"type":"pagewire:hello","nonce":"short"}`, `{"type":"pagewire:hello","nonce":"` + strings.Repeat("a", 44) +
			`"}`,
		`{"type":"pagewire:hello","nonce":"` + strings.Repeat("a", 42) + `\n"}`} {
		_, gateway := pipes()
		if err := Accept(t.Context(), gateway, []byte(hello), secret, where); !errors.Is(err, ErrNotProved) ||
			len(gateway.said) > 0 {
			t.Errorf("%s: %v, and it says %v", hello, err, gateway.said)
		}
	}
}

// The same words give the same proofs here and in a browser.
func TestVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/vectors.json")
	var all []struct{ Secret, Where, Client, Server, GatewayProof, ClientProof string }
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || len(all) == 0 {
		t.Fatal(err, len(all))
	}
	for _, v := range all {
		if got := mac(v.Secret, "gateway", v.Where, v.Client, v.Server); got != v.GatewayProof {
			t.Errorf("the gateway's proof is %s, want %s", got, v.GatewayProof)
		}
		if got := mac(v.Secret, "client", v.Where, v.Client, v.Server); got != v.ClientProof {
			t.Errorf("the client's proof is %s, want %s", got, v.ClientProof)
		}
	}
}

func TestSign(t *testing.T) {
	now := time.Now()
	token := Sign(secret, "session", where, now.Add(time.Minute))
	if !Verify(secret, "session", where, token, now) {
		t.Fatal("it is not accepted")
	}
	for name, ok := range map[string]bool{
		"another secret":  Verify(secret+"x", "session", where, token, now),
		"no secret":       Verify("", "session", where, Sign("", "session", where, now.Add(time.Minute)), now),
		"another purpose": Verify(secret, "ticket", where, token, now),
		"another address": Verify(secret, "session", "127.0.0.1:1", token, now),
		"later":           Verify(secret, "session", where, token, now.Add(time.Minute)),
		"a longer life":   Verify(secret, "session", where, strings.Replace(token, ".1", ".9", 1), now),
		"a part":          Verify(secret, "session", where, token[:len(token)-1], now),
		"more":            Verify(secret, "session", where, token+"A", now),
		"nothing":         Verify(secret, "session", where, "", now),
		"dots":            Verify(secret, "session", where, "..", now),
	} {
		if ok {
			t.Errorf("%s is accepted", name)
		}
	}
}
