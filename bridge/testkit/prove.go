package testkit

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// Prove does what js/extension/prove.ts does at a gateway that it has reached at where: it waits
// until the gateway has proved that it knows a secret, and then proves the same (package proof).
func Prove(ctx context.Context, m Messages, secret, where string) error {
	ours := rand.Text() + rand.Text()[:17] // as long as 32 bytes in base64url
	proof := func(who, theirs string) string {
		h := hmac.New(sha256.New, []byte(secret))
		h.Write([]byte(strings.Join([]string{"pagewire proof 1", who, where, ours, theirs}, "\n")))
		return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
	}
	if err := m.Write(ctx, []byte(`{"type":"pagewire:hello","nonce":"`+ours+`"}`)); err != nil {
		return err
	}
	answer, err := m.Read(ctx)
	if err != nil {
		return err
	}
	var in struct{ Type, Nonce, Proof string }
	if err := json.Unmarshal(answer, &in); err != nil {
		return err
	}
	if in.Type != "pagewire:proof" || in.Proof != proof("gateway", in.Nonce) {
		return errors.New("the gateway does not prove that it knows the secret")
	}
	return m.Write(ctx, []byte(`{"type":"pagewire:proof","proof":"`+proof("client", in.Nonce)+`"}`))
}

// Messages is a channel of whole messages.
type Messages interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, message []byte) error
}
