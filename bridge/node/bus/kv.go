package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pagewire/pagewire/bridge/internal/retry"
)

// A KV is a table of keys and values that all nodes share: a bucket of JetStream, at the nodes with
// a store. Its methods may be called concurrently. They fail while no node with a store is
// reachable.
type KV struct{ bucket jetstream.KeyValue }

// ErrKeep is the error with which the function of Change leaves the value as it is.
var ErrKeep = errors.New("nothing is to change")

// storeReplicas is the number of nodes that keep a bucket, once so many nodes have a store.
const storeReplicas = 3

// copyFirst and copyLast are the first and the longest pause between attempts to copy a table to
// more nodes.
const copyFirst, copyLast = time.Second, 30 * time.Second

// KV opens a table, and creates it if it does not exist. A value disappears when it was not set for
// age; 0 keeps it.
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

// copy copies a table to storeReplicas nodes once so many have a store: nodes that start together
// come up one after the other. Only nodes with a store do that.
func (b *Bus) copy(js jetstream.JetStream, config jetstream.KeyValueConfig) {
	if _, begun := b.copied.LoadOrStore(config.Bucket, true); begun || b.server == nil ||
		!b.server.JetStreamIsClustered() {
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

// Copies returns the number of nodes that have all of the table. Until there are three, the loss of
// one may lose it.
func (k *KV) Copies(ctx context.Context) (int, error) {
	status, err := k.bucket.Status(ctx)
	if err != nil {
		return 0, err
	}
	count := 1 // the leader
	if s, ok := status.(*jetstream.KeyValueBucketStatus); ok && s.StreamInfo().Cluster != nil {
		for _, replica := range s.StreamInfo().Cluster.Replicas {
			if replica.Current && !replica.Offline {
				count++
			}
		}
	}
	return count, nil
}

// Get returns the value of a key, nil if it has none.
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

// Change sets the value of a key to the result of change, which gets the old value, nil if there is
// none. A nil result deletes the key. change is called again if another node has set the value
// meanwhile. Change returns change's error, except ErrKeep. revision is the value's, and grows with
// each change in the table. After a deletion it is the revision before that.
func (k *KV) Change(ctx context.Context, key string,
	change func(old []byte) ([]byte, error)) (revision uint64,
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

// Watch calls take with each key and its value, then with each change, in order, until ctx ends or
// the store is lost. A deleted key has the value nil. all is called once, after take has got the
// values that existed at the start.
func (k *KV) Watch(ctx context.Context, take func(key string, value []byte, revision uint64),
	all func()) error {
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
