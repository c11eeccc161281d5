package tickets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwk"

	"github.com/pagewire/pagewire/bridge/weborigin"
)

const (
	// freshFor is how long keys are used before they are fetched again. retryAfter is the least
	// pause between fetches when no key has signed a token, or there are no keys.
	freshFor, retryAfter = 15 * time.Minute, 30 * time.Second
	// goodFor is how long keys stay good while fetches fail. The price: a withdrawn key stays good
	// for as long.
	goodFor = 24 * time.Hour
	maxKeys = 1 << 20 // bytes
)

// keys are the keys of an issuer.
type keys struct {
	where  string
	file   bool
	client *http.Client
	log    *slog.Logger
	now    func() time.Time

	mu   sync.Mutex    // guards the rest
	set  jwk.Set       // nil until there is one, and when it is too old
	of   time.Time     // when set was fetched
	at   time.Time     // when the last fetch ended
	busy chan struct{} // closed at the end of the fetch under way; nil without one
	err  error         // of the last fetch
}

func newKeys(where string, client *http.Client, log *slog.Logger, now func() time.Time) (*keys,
	error) {
	k := &keys{where: where, file: !strings.Contains(where, "://"), client: client, log: log,
		now: now}
	if u, err := url.Parse(where); !k.file &&
		(err != nil || u.Scheme != "https" && !weborigin.IsLoopback(u.Scheme+"://"+u.Host)) {
		return nil, fmt.Errorf("%q is not a place for keys: it must be a file, or an https URL",
			where)
	}
	_, err := k.get(context.Background(), false)
	if k.file {
		return k, err
	}
	return k, nil
}

// get returns the keys. With newer it fetches them first, unless the last fetch was less than
// retryAfter ago.
func (k *keys) get(ctx context.Context, newer bool) (jwk.Set, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now().Sub(k.of) > goodFor {
		k.set = nil
	}
	age, known := k.now().Sub(k.at), k.set != nil && !newer
	if !k.at.IsZero() && (known && age < freshFor || !known && age < retryAfter) {
		return k.had()
	}
	if k.busy == nil {
		k.busy = make(chan struct{})
		go k.refresh()
	}
	if !known { // old keys are used during the fetch
		busy := k.busy
		k.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
		}
		k.mu.Lock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return k.had()
}

func (k *keys) had() (jwk.Set, error) {
	switch {
	case k.set != nil:
		return k.set, nil
	case k.err != nil:
		return nil, k.err
	}
	return nil, errors.New("its keys are too old")
}

func (k *keys) refresh() {
	set, err := k.fetch()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.set, k.of = set, k.now()
	} else {
		k.log.Warn("the keys of an issuer could not be had", "jwks", k.where, "error", err)
	}
	k.err, k.at = err, k.now()
	close(k.busy)
	k.busy = nil
}

func (k *keys) fetch() (jwk.Set, error) {
	text, err := k.read()
	if err != nil {
		return nil, err
	}
	if len(text) > maxKeys {
		return nil, fmt.Errorf("%s has more than %d bytes", k.where, maxKeys)
	}
	set, err := jwk.Parse(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err == nil && set.Len() == 0 {
		err = errors.New("there are no keys")
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no JSON Web Key Set: %w", k.where, err)
	}
	return set, nil
}

func (k *keys) read() ([]byte, error) {
	if k.file {
		f, err := os.Open(k.where)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, maxKeys+1))
	}
	answer, err := k.client.Get(k.where)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", k.where, answer.Status)
	}
	return io.ReadAll(io.LimitReader(answer.Body, maxKeys+1))
}

// stay follows no redirect: the configuration alone says where keys are.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
