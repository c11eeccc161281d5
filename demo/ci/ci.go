// Package ci serves the page of a CI run, as a site does that has never heard of Pagewire. Its
// policy allows the page's own script, by a nonce, and nothing else.
//
// Pages of others are shown to agents with it. It never uses Pagewire, and knows nothing about
// agents.
package ci

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Path is where the page is served.
const Path = "/runs/4821"

// Status of the job browser. The other jobs of the run have ended.
const (
	Runs  = "In progress"
	Fails = "Failed"
)

// page has the nonce of its script and style at each {nonce}, and the job's status at {status}.
//
//go:embed page.html
var page string

// A Run is a handler that serves one run, whose job browser is in progress at first. The page shows
// what Set says within a quarter of a second.
type Run struct {
	mu     sync.Mutex
	status string
	// again is the time until a run that a person has started again fails.
	again time.Duration
}

// New returns a run. After its button "Re-run failed jobs" it fails in the given time.
func New(again time.Duration) *Run { return &Run{status: Runs, again: again} }

// Set changes the status of the job browser.
func (r *Run) Set(status string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *Run) now() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

func (r *Run) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch q.Method + " " + q.URL.Path {
	case "GET " + Path:
		nonce := rand.Text()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", fmt.Sprintf("default-src 'none'; "+
			"script-src 'nonce-%[1]s'; style-src 'nonce-%[1]s'; connect-src 'self'; img-src data:; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "+
			"require-trusted-types-for 'script'; trusted-types 'none'", nonce))
		fmt.Fprint(w, strings.NewReplacer("{nonce}", nonce, "{status}", r.now()).Replace(page))
	case "GET " + Path + "/browser":
		fmt.Fprint(w, r.now())
	case "POST " + Path + "/browser":
		r.Set(Runs)
		time.AfterFunc(r.again, func() { r.Set(Fails) })
	default:
		http.NotFound(w, q)
	}
}
