package webhook

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
)

// A Store is a table that all nodes share: bus.KV describes the methods.
type Store interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, value []byte) error
	Change(ctx context.Context, key string,
		change func(old []byte) ([]byte, error)) (revision uint64, err error)
	Copies(ctx context.Context) (int, error)
	Watch(ctx context.Context, take func(key string, value []byte, revision uint64),
		all func()) error
}

// A record is a subscription in the store.
type record struct {
	// Principal has subscribed to events of User's pages. Both are as in node/tickets.
	Principal, User string
	URL, Name       string
	Arguments       string // canonical
	// Secrets are the current one, and until Rotated also the previous one. One that has ended has
	// none, unless it was revoked and its endpoint is not told yet.
	Secrets  []Secret
	Rotated  time.Time
	Until    time.Time // the end, unless it is refreshed
	Renewed  time.Time // the last refresh
	Ended    bool      // by the subscriber, or by the operator
	Verified time.Time // when the endpoint answered the challenge
	Cursor   string    // each event up to it was delivered or given up
	// Delivered is the time of the last success, Failed the category of the last failure after it,
	// and Failing the time of the first.
	Delivered time.Time
	Failed    string
	Failing   time.Time
}

// Bounds of grants.
const (
	minGrant, defaultGrant, maxGrant = time.Minute, 30 * time.Minute, time.Hour
)

// kept is how long a record stays in the store after its last change: a grant, and a day in which a
// subscription that has ended differs from one that never existed.
const kept = maxGrant + 24*time.Hour

// grace is how long deliveries are also signed with the previous secret.
const grace = 10 * time.Minute

func (r *record) live(now time.Time) bool { return !r.Ended && r.owed(now) }

// owed reports whether an endpoint may get something: events, or the envelope "terminated".
func (r *record) owed(now time.Time) bool { return len(r.Secrets) > 0 && now.Before(r.Until) }

func (r *record) id() string {
	text, err := json.Marshal([]string{r.Principal, r.User, r.URL, r.Name, r.Arguments})
	if err != nil { // not possible: strings encode
		panic(err)
	}
	sum := sha256.Sum256(text)
	return "sub_" + hex.EncodeToString(sum[:16])
}

func (r *record) key() string { return r.User + "." + r.id() }

func idOf(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

func (r *record) signedBy(now time.Time) []Secret {
	if len(r.Secrets) > 1 && now.After(r.Rotated) {
		return r.Secrets[:1]
	}
	return r.Secrets
}

// A box encrypts records.
type box struct{ cipher.AEAD }

// newBox makes a box from an operator's key, a text of any length.
func newBox(key string) (box, error) {
	sum := sha256.Sum256([]byte(key))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return box{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return box{aead}, err
}

// seal encrypts a record for its key in the store: the value does not open under another key of the
// store.
func (b box) seal(r *record) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return b.Seal(nil, nil, text, []byte(r.key())), nil
}

// open decrypts a record. It returns nil if there is none, or another key has encrypted it.
func (b box) open(key string, value []byte) *record {
	text, err := b.Open(nil, nil, value, []byte(key))
	r := new(record)
	if err != nil || json.Unmarshal(text, r) != nil {
		return nil
	}
	return r
}

// orNull is a member of JSON: null instead of an empty text.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
