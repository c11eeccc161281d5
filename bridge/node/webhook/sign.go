package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Secret is the key that a subscriber and a node share: 24 to 64 bytes.
type Secret []byte

// secretPrefix begins the text of a Secret. Base64 follows.
const secretPrefix = "whsec_"

const minSecret, maxSecret = 24, 64

// ParseSecret decodes the text of a Secret; ok is false if it is not one.
func ParseSecret(text string) (s Secret, ok bool) {
	text, ok = strings.CutPrefix(text, secretPrefix)
	if !ok || len(text) > 2*maxSecret {
		return nil, false
	}
	s, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(s) < minSecret || len(s) > maxSecret {
		return nil, false
	}
	return s, true
}

// sign sets the headers of Standard Webhooks, with a signature for each secret, the current one
// first.
func sign(h http.Header, id string, at time.Time, body []byte, secrets []Secret) {
	seconds := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		mac := hmac.New(sha256.New, s)
		mac.Write([]byte(id + "." + seconds + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", seconds)
	h.Set("webhook-signature", strings.Join(signatures, " "))
}
