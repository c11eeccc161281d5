//go:build engines

package engine

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// What the tests rely on, so that none of them proves nothing: ENGINE's browser tells what a page writes and what
// nobody catches, input is a person's, there is a back/forward cache, and a hidden tab is hidden.
func TestTab(t *testing.T) {
	name := os.Getenv("ENGINE")
	if name == "" {
		t.Fatal("ENGINE names none of firefox, webkit: run make test-engines")
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `<!doctype html><title>a page</title><script>%s
			addEventListener("pageshow", ({ persisted }) => { globalThis.persisted = persisted; });
			addEventListener("click", ({ isTrusted }) => { globalThis.clicked = isTrusted; });
		</script><input id=field>`, Recorder)
	}))
	t.Cleanup(s.Close)
	ctx, end := context.WithTimeout(t.Context(), 2*testkit.Patience)
	t.Cleanup(end)
	b, err := Launch(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	var mu sync.Mutex
	heard := map[Message]bool{}
	tab, err := b.Open(ctx, func(m Message) {
		mu.Lock()
		defer mu.Unlock()
		heard[m] = true
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tab.Close)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	is := func(want, expression string) {
		t.Helper()
		got, err := tab.Evaluate(ctx, "(async () => String("+expression+"))()")
		if err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", expression, got, err, want)
		}
	}
	must(tab.Navigate(ctx, s.URL+"/one"))
	is("true false", `isSecureContext + " " + document.hidden`)
	if _, err := tab.Evaluate(ctx, `Promise.reject(new Error("a reason"))`); err == nil ||
		!strings.Contains(err.Error(), "a reason") {
		t.Errorf("a promise that is rejected: %v", err)
	}
	must(tab.Type(ctx, "#field", "milk"))
	is("milk true", `document.getElementById("field").value + " " + clicked`)

	_, err = tab.Evaluate(ctx, `(async () => {
		console.error("said", new Error("its text"));
		console.log("not heard");
		setTimeout(() => { throw new TypeError("thrown"); });
		void Promise.reject(new RangeError("rejected"));
		return "";
	})()`)
	must(err)
	want := []Message{{false, "said Error: its text"}, {true, "TypeError: thrown"}, {true, "RangeError: rejected"}}
	testkit.Eventually(t, fmt.Sprintf("%+v are heard", want), func() bool {
		is("1", "1") // WebKit tells what it has with the next answer
		mu.Lock()
		defer mu.Unlock()
		return heard[want[0]] && heard[want[1]] && heard[want[2]]
	})
	if len(heard) != len(want) {
		t.Errorf("heard %+v", heard)
	}

	must(tab.Navigate(ctx, s.URL+"/two"))
	must(tab.Back(ctx))
	testkit.Eventually(t, "the first page is back, as it was", func() bool {
		got, err := tab.Evaluate(ctx, `(async () => location.pathname + globalThis.persisted + field.value)()`)
		return err == nil && got == "/onetruemilk"
	})
	must(tab.Reload(ctx))
	is("undefined", "globalThis.clicked")
	must(tab.Hide(ctx))
	testkit.Eventually(t, "the tab is hidden", func() bool {
		got, err := tab.Evaluate(ctx, `(async () => String(document.hidden))()`)
		return err == nil && got == "true"
	})
}
