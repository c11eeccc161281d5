// Package proof lets the two ends of a connection show each other that they know the same secret,
// without telling it.
//
// It is for connections to a port of loopback, where anybody may listen and anybody may connect.
// The end that listens proves itself first, so that the other end tells nothing to a stranger. The
// exchange has three messages:
//
//	> {"type":"pagewire:hello","nonce":C}
//	< {"type":"pagewire:proof","nonce":S,"proof":HMAC("gateway", where, C, S)}
//	> {"type":"pagewire:proof","proof":HMAC("client", where, C, S)}
//
// HMAC uses SHA-256 and the secret. Its input is the line "pagewire proof 1" and then the words,
// one a line. HMACs and nonces (32 random bytes each) are base64url. where is the address that was
// dialled, as each end knows it. A squatter that relays all messages to the true gateway at another
// port has the wrong address. The end that connects is js/extension/prove.ts, in a browser; the tests
// of both read testdata/vectors.json.
//
// Sign and Verify make and check tokens of limited life for a purpose, under the same secret.
//
// The package encrypts nothing: only root can read another user's loopback traffic.
package proof

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Messages is a channel of whole messages, for example a wsconn.Conn.
type Messages interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, message []byte) error
}

// ErrNotProved means that the other end does not know our secret.
var ErrNotProved = errors.New("the other end does not prove that it knows the secret")

const (
	helloType = "pagewire:hello"
	proofType = "pagewire:proof"
)

type note struct {
	Type  string `json:"type"` // first, so that the text is a note of wsconn
	Nonce string `json:"nonce,omitempty"`
	Proof string `json:"proof,omitempty"`
}

var nonceShape = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// Accept proves itself to an end that has connected to where, and returns nil if that end then
// proves itself too. hello is that end's first message. The caller closes the connection.
func Accept(ctx context.Context, m Messages, hello []byte, secret, where string) error {
	var in note
	if json.Unmarshal(hello, &in) != nil || in.Type != helloType ||
		!nonceShape.MatchString(in.Nonce) || secret == "" {
		return ErrNotProved
	}
	ours := nonce()
	if err := write(ctx, m,
		note{proofType, ours, mac(secret, "gateway", where, in.Nonce, ours)}); err != nil {
		return err
	}
	theirs, err := read(ctx, m)
	if err != nil {
		return err
	}
	if theirs.Type != proofType ||
		!same(theirs.Proof, mac(secret, "client", where, in.Nonce, ours)) {
		return ErrNotProved
	}
	return nil
}

func read(ctx context.Context, m Messages) (n note, err error) {
	text, err := m.Read(ctx)
	if err == nil && json.Unmarshal(text, &n) != nil {
		err = ErrNotProved
	}
	return n, err
}

func write(ctx context.Context, m Messages, n note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return m.Write(ctx, text)
}

func nonce() string {
	random := make([]byte, 32)
	rand.Read(random) // it does not fail
	return base64.RawURLEncoding.EncodeToString(random)
}

// mac is the HMAC over words. A word has no line end.
func mac(secret string, words ...string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("pagewire proof 1\n" + strings.Join(words, "\n")))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// same takes the same time for all values.
func same(given, want string) bool { return hmac.Equal([]byte(given), []byte(want)) }

// Sign makes a token for a purpose at an address. Verify accepts it with the same values before the
// time until.
func Sign(secret, purpose, where string, until time.Time) string {
	head := nonce() + "." + strconv.FormatInt(until.Unix(), 10)
	return head + "." + mac(secret, purpose, where, head)
}

// Verify reports whether Sign made the token from the same values, and its time is not over.
func Verify(secret, purpose, where, token string, now time.Time) bool {
	i := strings.LastIndexByte(token, '.')
	if secret == "" || i < 0 || strings.ContainsAny(token, "\n\r") ||
		!same(token[i+1:], mac(secret, purpose, where, token[:i])) {
		return false
	}
	_, until, _ := strings.Cut(token[:i], ".")
	seconds, err := strconv.ParseInt(until, 10, 64)
	return err == nil && now.Unix() < seconds
}
