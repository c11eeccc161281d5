package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pagewire/pagewire/demo/step"
)

// state is the content of the agent console. The story knows only the console's document of the
// agent, which common/console/view.tsx describes.
type state struct {
	Agent         string            `json:"agent"`         // connecting, subscribed or error
	Trouble       string            `json:"trouble"`       // the reason, if Agent is error
	Steps         map[string]string `json:"steps"`         // by kind, as a person reads them
	Resources     []resource        `json:"resources"`     // as listed now
	Notifications []notification    `json:"notifications"` // newest first
	// by type: the page's events since the person's last action
	Events map[string]events `json:"events"`
}

type resource struct {
	URI   string `json:"uri"`
	Name  string `json:"name"`
	Reads int    `json:"reads"`
	Text  string `json:"text"` // the text of the last read, white space shortened
}

type notification struct {
	URI string  `json:"uri"` // "" for the list
	At  float64 `json:"at"`  // the page's clock, in milliseconds
}

type events struct {
	First float64 `json:"first"` // by the page's clock, too
	Count int     `json:"count"`
}

// lookScript reads a state. The first time, it also begins to record the events of the person's
// actions. It listens on the window, capturing, and so before the page's own listeners.
const lookScript = `(() => {
  if (!globalThis.events) {
    globalThis.events = {};
    for (const type of ["input", "selectionchange"]) {
      addEventListener(type, () => {
        const of = (globalThis.events[type] ??= { first: performance.now(), count: 0 });
        of.count++;
      }, { capture: true });
    }
  }
  const all = (selector, pick) => [...document.querySelectorAll(selector)].map(pick);
  return {
    agent: document.documentElement.dataset.agent ?? "",
    trouble: document.querySelector("#trouble span")?.textContent ?? "",
    steps: Object.fromEntries(all("#steps li", (li) => [li.dataset.kind, li.textContent])),
    resources: all("#resources [data-uri]", (li) => ({
      uri: li.dataset.uri,
      name: li.dataset.name,
      reads: Number(li.dataset.reads),
      text: li.querySelector(".preview").textContent,
    })),
    notifications: all("#notifications li", (li) => ({ uri: li.dataset.uri, at: Number(li.dataset.at) })),
    events: globalThis.events,
  };
})()`

// look reads the page's state.
func (t *teller) look() (state, error) {
	ctx, cancel := context.WithTimeout(t.ctx, stepDeadline)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[state](lookScript))
	if err != nil {
		err = fmt.Errorf("look at the page: %w", err)
	}
	return s, err
}

// wait looks until done accepts the page's state, and returns that state. Its times are the page's,
// so that the pause between two looks does not matter.
func (t *teller) wait(what string, limit time.Duration, done func(state) bool) state {
	for deadline := time.Now().Add(limit); ; {
		s, err := t.look()
		switch {
		case err != nil:
		case done(s):
			return s
		case s.Agent == "error":
			err = errors.New(s.Trouble)
		case time.Now().After(deadline):
			err = fmt.Errorf("did not happen within %v", limit)
		}
		step.Check(err, what)
		select {
		case <-t.ctx.Done():
			step.Check(errors.Join(t.ctx.Err(), context.Cause(t.ctx)), what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// resource finds a listed resource by its name; none is the zero resource.
func (s state) resource(name string) resource {
	for _, r := range s.Resources {
		if r.Name == name {
			return r
		}
	}
	return resource{}
}

// read counts the resources that the agent has read.
func (s state) read() int {
	n := 0
	for _, r := range s.Resources {
		if r.Reads > 0 {
			n++
		}
	}
	return n
}

// since returns the notifications about uri that came after before was seen, newest first.
func (s state) since(before state, uri string) []notification {
	var found []notification
	for _, n := range s.Notifications {
		if len(before.Notifications) > 0 && n.At <= before.Notifications[0].At {
			break
		}
		if n.URI == uri {
			found = append(found, n)
		}
	}
	return found
}
