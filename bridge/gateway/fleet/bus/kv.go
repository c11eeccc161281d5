package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pagewire/pagewire/bridge/gateway/retry"
)

// A KV is a table of keys and values that all nodes share: a bucket of JetStream, at the nodes with a store. Its methods
// may be called concurrently. They fail while no store is reached.
type KV struct{ bucket jetstream.KeyValue }

// ErrKeep is what a change fails with that changes nothing.
var ErrKeep = errors.New("nothing is to change")

// storeReplicas is how many nodes keep a bucket, where there are as many with a store.
const storeReplicas = 3

// copyFirst and copyLast are the pauses before a table is to have more copies again, while too few nodes have a store.
const copyFirst, copyLast = time.Second, 30 * time.Second

// KV opens a table, and makes it where there is none. A value is gone when it was not set for age; 0 keeps it for ever.
func (b *Bus) KV(ctx context.Context, name string, age time.Duration) (*KV, error) {
	js, err := jetstream.New(b.conn)
	if err != nil {
		return nil, err
	}
	config := jetstream.KeyValueConfig{Bucket: name, TTL: age, Replicas: storeReplicas}
	if b.server != nil {
		config.Placement = &jetstream.Placement{Tags: []string{tablesTag}}
	}
	bucket, err := js.CreateOrUpdateKeyValue(ctx, config)
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) { // too few nodes with a store
		if bucket, err = js.KeyValue(ctx, name); errors.Is(err, jetstream.ErrBucketNotFound) {
			config.Replicas = 1
			bucket, err = js.CreateOrUpdateKeyValue(ctx, config)
		}
		b.copy(js, config)
	}
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	return &KV{bucket}, nil
}

// copy has a table copied as soon as as many nodes have a store: those that start together come one after the other. Only
// nodes with a store do that.
func (b *Bus) copy(js jetstream.JetStream, config jetstream.KeyValueConfig) {
	if _, begun := b.copied.LoadOrStore(config.Bucket, true); begun || b.second == nil {
		return
	}
	config.Replicas = storeReplicas
	go func() {
		for range retry.Attempts(b.closed, copyFirst, copyLast) {
			ctx, cancel := context.WithTimeout(b.closed, copyLast)
			_, err := js.UpdateKeyValue(ctx, config)
			cancel()
			if err == nil {
				return
			}
		}
	}()
}

// Get returns the value of a key, nil where there is none.
func (k *KV) Get(ctx context.Context, key string) ([]byte, error) {
	value, _, err := k.get(ctx, key)
	return value, err
}

func (k *KV) get(ctx context.Context, key string) ([]byte, uint64, error) {
	entry, err := k.bucket.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, nil
	} else if err != nil {
		return nil, 0, err
	}
	return entry.Value(), entry.Revision(), nil
}

// Put sets the value of a key.
func (k *KV) Put(ctx context.Context, key string, value []byte) error {
	_, err := k.bucket.Put(ctx, key, value)
	return err
}

// Change sets the value of a key to that which change makes of the old one: nil deletes it, and is the old value where
// there is none. change is called again if another node has set the value meanwhile. Its error is returned; ErrKeep is
// none. revision is that of the value, and grows with each change in the table; of a key that was deleted it is the one
// before.
func (k *KV) Change(ctx context.Context, key string, change func(old []byte) ([]byte, error)) (revision uint64,
	err error) {
	for {
		var old, value []byte
		if old, revision, err = k.get(ctx, key); err != nil {
			return 0, err
		}
		value, err = change(old)
		switch {
		case errors.Is(err, ErrKeep) || err == nil && value == nil && old == nil:
			return revision, nil
		case err != nil:
			return 0, err
		case value == nil:
			err = k.bucket.Delete(ctx, key, jetstream.LastRevision(revision))
		case revision == 0:
			revision, err = k.bucket.Create(ctx, key, value)
		default:
			revision, err = k.bucket.Update(ctx, key, value, revision)
		}
		if !conflict(err) || ctx.Err() != nil {
			return revision, err
		}
	}
}

func conflict(err error) bool {
	api := (*jetstream.APIError)(nil)
	return errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) &&
		(api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
			api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// Watch calls take with each key and its value, then with each change, in order, until ctx ends or the store is lost: a
// deleted key has the value nil. all is called once, when what was there has been taken.
func (k *KV) Watch(ctx context.Context, take func(key string, value []byte, revision uint64), all func()) error {
	w, err := k.bucket.WatchAll(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case entry, ok := <-w.Updates():
			switch {
			case !ok:
				return nil
			case entry == nil:
				all()
			case entry.Operation() != jetstream.KeyValuePut:
				take(entry.Key(), nil, entry.Revision())
			default:
				take(entry.Key(), entry.Value(), entry.Revision())
			}
		}
	}
}
