package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// table opens a table at a node, when the store is there.
func table(t *testing.T, b *Bus) (k *KV) {
	t.Helper()
	testkit.Settles(t, "the table is open", func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var err error
		if k, err = b.KV(ctx, "table", time.Hour); err != nil {
			return err.Error()
		}
		return ""
	})
	return k
}

// sets sets a key, when the store accepts it.
func sets(t *testing.T, k *KV, key, value string) {
	t.Helper()
	testkit.Settles(t, key+" is set", func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := k.Put(ctx, key, []byte(value)); err != nil {
			return err.Error()
		}
		return ""
	})
}

func has(t *testing.T, k *KV, key, want string) {
	t.Helper()
	testkit.Settles(t, key+" is "+want, func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if got, err := k.Get(ctx, key); err != nil || string(got) != want {
			return fmt.Sprintf("it is %q, %v", got, err)
		}
		return ""
	})
}

// A node that is alone has its store without a network, and finds the values again after a restart.
func TestAStoreAlone(t *testing.T) {
	o := Options{Name: "a", Store: t.TempDir(), Secret: "secret"}
	b, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	k := table(t, b)
	sets(t, k, "key", "one")
	b.Close()
	k = table(t, open(t, o))
	has(t, k, "key", "one")
	if b := open(t, Options{Name: "b"}); b != nil {
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Moment)
		defer cancel()
		if _, err := b.KV(ctx, "table", time.Hour); err == nil {
			t.Error("a node without a store has a table")
		}
	}
}

// One node of two has the store. The other one uses it, also after a restart of the first.
func TestAStoreAtAnotherNode(t *testing.T) {
	t.Parallel()
	o := Options{Name: "a", Store: t.TempDir(), Secret: "secret", Cluster: testkit.Addr(t)}
	a, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, Options{Name: "b", Cluster: "127.0.0.1:0", Join: []string{o.Cluster}})
	k := table(t, b)
	told := make(chan string, 100)
	all := make(chan bool, 1)
	sets(t, k, "before", "0")
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		_ = k.Watch(ctx, func(key string, value []byte, _ uint64) { told <- key + "=" + string(value) }, func() { all <- true })
	})
	testkit.Receive(t, "all that there was", all)
	if got := testkit.Receive(t, "what there was", told); got != "before=0" {
		t.Errorf("there was %s", got)
	}
	sets(t, table(t, a), "key", "one")
	if got := testkit.Receive(t, "a change", told); got != "key=one" {
		t.Errorf("the change is %s", got)
	}
	a.Close()
	open(t, o)
	has(t, k, "key", "one")
	sets(t, k, "key", "two")
	for got := ""; got != "key=two"; {
		got = testkit.Receive(t, "a change after the store's restart", told)
	}
	if _, err := k.Change(t.Context(), "key", func([]byte) ([]byte, error) { return nil, nil }); err != nil {
		t.Error(err)
	}
	for got := ""; got != "key="; {
		got = testkit.Receive(t, "that the key is deleted", told)
	}
	has(t, k, "key", "")
	if _, err := k.Change(t.Context(), "key", func([]byte) ([]byte, error) { return []byte("three"), nil }); err != nil {
		t.Errorf("a deleted key is not set again: %v", err)
	}
}

// No change is lost when several nodes change a value at the same time.
func TestChangesAtTheSameTime(t *testing.T) {
	t.Parallel()
	first := testkit.Addr(t)
	nodes := []*Bus{open(t, Options{Name: "a", Store: t.TempDir(), Cluster: first})}
	for _, name := range []string{"b", "c"} {
		nodes = append(nodes, open(t, Options{Name: name, Store: t.TempDir(), Cluster: testkit.Addr(t), Join: []string{first}}))
	}
	var all sync.WaitGroup
	var want []string
	for n, b := range nodes {
		k := table(t, b)
		for i := range 10 {
			want = append(want, fmt.Sprint("abc"[n:n+1], i))
		}
		all.Go(func() {
			for _, word := range want[10*n : 10*n+10] {
				// While the copies are made the store may be silent for the 5 s of a request. Like a caller, the test then repeats
				// the change, although the first attempt may have succeeded.
				for err := context.DeadlineExceeded; errors.Is(err, context.DeadlineExceeded); {
					if _, err = k.Change(t.Context(), "words", func(old []byte) ([]byte, error) {
						if slices.Contains(strings.Fields(string(old)), word) {
							return nil, ErrKeep
						}
						return append(old, word+" "...), nil
					}); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	k := table(t, nodes[1])
	testkit.Settles(t, "each change was made once", func() string {
		text, err := k.Get(t.Context(), "words")
		if got := slices.Sorted(strings.FieldsSeq(string(text))); err != nil || !slices.Equal(got, want) {
			return fmt.Sprint(got, err)
		}
		return ""
	})
	errStop := errors.New("stop")
	if _, err := k.Change(t.Context(), "words", func([]byte) ([]byte, error) { return nil, errStop }); err != errStop {
		t.Errorf("the change fails with %v", err)
	}
	before, err := k.Change(t.Context(), "words", func([]byte) ([]byte, error) { return nil, ErrKeep })
	if err != nil || before == 0 {
		t.Errorf("what is kept has revision %d, and %v", before, err)
	}
	// When a node ends the other two must reach each other, as the second servers of two nodes do not.
	testkit.Settles(t, "each node keeps a copy, and no second server does", func() string {
		return strings.TrimPrefix(fmt.Sprint(holders(t, k)), "[a b c]")
	})
	testkit.Settles(t, "three copies are counted", func() string {
		if copies, err := k.Copies(t.Context()); copies != storeReplicas || err != nil {
			return fmt.Sprint(copies, err)
		}
		return ""
	})
	nodes[0].Close() // two have a copy
	sets(t, k, "after", "1")
	has(t, table(t, nodes[2]), "after", "1")
}

// holders returns the servers with an up-to-date copy of a table.
func holders(t *testing.T, k *KV) (names []string) {
	t.Helper()
	status, err := k.bucket.Status(t.Context())
	if err != nil {
		return []string{err.Error()}
	}
	cluster := status.(*jetstream.KeyValueBucketStatus).StreamInfo().Cluster
	names = []string{cluster.Leader}
	for _, replica := range cluster.Replicas {
		if replica.Current {
			names = append(names, replica.Name)
		}
	}
	slices.Sort(names)
	return names
}

// The node that alone has a store names the others, which have none, at its first start.
func TestAStoreThatJoins(t *testing.T) {
	t.Parallel()
	addrs := []string{testkit.Addr(t), testkit.Addr(t), testkit.Addr(t)}
	nodes := make([]*Bus, len(addrs))
	for i := range addrs {
		o := Options{Name: "abc"[i : i+1], Secret: "secret", Cluster: addrs[i], Join: slices.Delete(slices.Clone(addrs), i, i+1)}
		if i == 0 {
			o.Store = t.TempDir()
		}
		nodes[i] = open(t, o)
	}
	sets(t, table(t, nodes[0]), "key", "one")
	has(t, table(t, nodes[2]), "key", "one")
}
