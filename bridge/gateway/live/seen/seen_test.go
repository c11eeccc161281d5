package seen

import (
	"crypto/sha256"
	"strings"
	"testing"
)

func version(revision int64, text string) Version {
	return Version{Revision: revision, Text: text, Hash: sha256.Sum256([]byte(text))}
}

func TestWhatAnAgentHas(t *testing.T) {
	r := New(Limits{})
	r.Give("a", version(10, "one"))
	r.Give("b", version(12, "other"))
	r.Give("a", version(20, "two"))
	for _, c := range []struct {
		name     string
		uri      string
		since    int64
		part     string
		want     string
		wantNone bool
	}{
		{name: "the last", uri: "a", since: 20, want: "two"},
		{name: "the one before", uri: "a", since: 10, want: "one"},
		{name: "as of another URI's revision", uri: "a", since: 12, want: "one"},
		{name: "a part of what it has in whole", uri: "a", since: 20, part: "/x", want: "two"},
		{name: "before it had any", uri: "b", since: 10, wantNone: true},
		{name: "a revision that it was not given", uri: "a", since: 15, wantNone: true},
		{name: "one from nowhere", uri: "a", since: 1 << 60, wantNone: true},
		{name: "a URI that it has not read", uri: "c", since: 20, wantNone: true},
	} {
		v, ok := r.Since(c.uri, c.since, c.part)
		if v.Text != c.want || ok == c.wantNone {
			t.Errorf("%s: got %q, %v", c.name, v.Text, ok)
		}
	}
	r.Issue(15)
	if v, _ := r.Since("a", 15, ""); v.Text != "one" {
		t.Errorf("as of a revision that a wait gave: %q", v.Text)
	}
	r.Clear()
	if _, ok := r.Last("a"); ok || r.Bytes() != 0 || r.Len() != 0 {
		t.Error("something is left")
	}
	if _, ok := r.Since("a", 20, ""); ok {
		t.Error("a revision is left")
	}
}

func TestParts(t *testing.T) {
	r := New(Limits{})
	part := version(1, "the whole")
	part.Part = "/x"
	r.Give("a", part)
	if _, ok := r.Since("a", 1, ""); ok {
		t.Error("who has a part has the whole")
	}
	if _, ok := r.Since("a", 1, "/y"); ok {
		t.Error("who has a part has another one")
	}
	if _, ok := r.Since("a", 1, "/x"); !ok {
		t.Error("who has a part does not have it")
	}
	r.Give("a", version(1, "the whole"))
	r.Give("a", part)
	if v, _ := r.Last("a"); v.Part != "" {
		t.Error("who has the whole, and then looks at a part, has a part")
	}
}

func TestSayingThatSomethingHasChanged(t *testing.T) {
	r := New(Limits{})
	r.Give("a", version(1, "one"))
	r.Mention("a", 5)
	if !r.Mentioned("a") {
		t.Error("it was mentioned")
	}
	r.Renew("a", Version{Revision: 6, Epoch: "epoch", Count: 3})
	if v, _ := r.Last("a"); r.Mentioned("a") || v.Current != 6 || v.Epoch != "epoch" || v.Count != 3 {
		t.Errorf("it reads as the agent knows it: %+v", v)
	}
	if v, ok := r.Since("a", 1, ""); !ok || v.Text != "one" {
		t.Error("the revision that the agent was given is lost")
	}
	r.Mention("a", 9)
	r.Give("a", version(9, "two"))
	if r.Mentioned("a") {
		t.Error("it has been given since")
	}
	r.Mention("nothing", 1) // this has no effect
}

func TestTheOldestGoesFirst(t *testing.T) {
	r := New(Limits{URIs: 2, Bytes: 100})
	r.Give("a", version(1, strings.Repeat("a", 60)))
	r.Give("b", version(2, strings.Repeat("b", 60)))
	if v, _ := r.Last("a"); !v.Gone || v.Text != "" || v.Hash == [32]byte{} {
		t.Errorf("the first text is still there, or its hash is not: %+v", v)
	}
	if got := r.Give("c", version(3, "c")); got != "a" {
		t.Errorf("forgot %q, want a", got)
	}
	r.Give("b", version(4, "b"))
	if got := r.Give("d", version(5, "d")); got != "c" {
		t.Errorf("forgot %q, want c", got)
	}
	r.Give("d", version(6, strings.Repeat("d", 101)))
	if v, _ := r.Last("d"); !v.Gone {
		t.Error("a text above the limit is kept")
	}
	for i := range int64(maxIssued + 10) {
		r.Issue(100 + i)
	}
	if len(r.issued) != maxIssued || len(r.order) != maxIssued {
		t.Errorf("%d revisions are known, %d in order", len(r.issued), len(r.order))
	}
}

// FuzzRecord takes operations from bytes, and compares the record with a list of all given versions.
func FuzzRecord(f *testing.F) {
	f.Add([]byte("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"))
	f.Fuzz(func(t *testing.T, program []byte) {
		r := New(Limits{URIs: 3, Bytes: 64})
		given := map[string][]Version{}
		revision := int64(0)
		for i := 0; i+1 < len(program); i += 2 {
			uri := string('a' + rune(program[i]>>4%5))
			n := int(program[i+1])
			switch program[i] & 7 {
			case 0, 1, 2, 3:
				revision += int64(n & 1)
				v := version(revision, strings.Repeat(uri, n%40))
				v.Part = []string{"", "", "/x"}[n%3]
				forgotten := r.Give(uri, v)
				delete(given, forgotten)
				given[uri] = append(given[uri], v)
				if last, ok := r.Last(uri); !ok || last.Hash != v.Hash {
					t.Fatalf("%s was given, and is not the last", uri)
				}
			case 4:
				r.Mention(uri, revision+int64(n))
			case 5:
				if last, ok := r.Last(uri); ok {
					r.Renew(uri, Version{Revision: revision + int64(n), Epoch: "e", Count: 1, Hash: last.Hash})
				}
			case 6:
				r.Forget(uri)
				delete(given, uri)
			case 7:
				v, ok := r.Since(uri, int64(n), "")
				if !ok {
					continue
				}
				known := false
				for _, g := range given[uri] {
					known = known || g.Revision == v.Revision && g.Hash == v.Hash && (v.Gone || v.Text == g.Text)
				}
				if !known || v.Revision > int64(n) || v.Part != "" {
					t.Fatalf("since %d: %+v, of %+v", n, v, given[uri])
				}
			}
			sum := 0
			for u := range r.URIs {
				for _, v := range r.entries[u].versions {
					sum += len(v.Text)
				}
				if n := len(r.entries[u].versions); n == 0 || n > maxVersions {
					t.Fatalf("%d versions of %s", n, u)
				}
			}
			if r.Len() > 3 || r.Bytes() > 64 || sum != r.Bytes() {
				t.Fatalf("%d URIs, %d bytes, in truth %d", r.Len(), r.Bytes(), sum)
			}
		}
	})
}

func TestKnown(t *testing.T) {
	r := New(Limits{})
	if _, ok := r.Known("a"); ok {
		t.Error("it was never told of a")
	}
	r.Give("a", Version{Revision: 3})
	r.Mention("a", 5)
	if got, ok := r.Known("a"); got != 5 || !ok {
		t.Errorf("it knows of revision %d, %v", got, ok)
	}
	r.Renew("a", Version{Revision: 7})
	if got, _ := r.Known("a"); got != 7 {
		t.Errorf("then of %d", got)
	}
}
