//go:build unix

// Package engine runs browsers with other engines than Chromium's, and drives them as a test needs
// it: Firefox by WebDriver BiDi, WebKitGTK by WebDriver. Both are a few commands of JSON, over the
// WebSocket library that the gateway has anyway and over net/http. Go's one library for them
// (tebeka/selenium) has not changed since 0.9.9 and knows no BiDi. Those of JavaScript would put a
// process of Node and a protocol of our own between a test and its browser.
//
// A browser has a profile of its own, which ends with it, and settings of its own: features that
// test drivers turn off by default (the back/forward cache, throttled timers) are on. It never
// finds, downloads or updates a browser: Debian's are used.
package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// A Browser runs until it is closed.
type Browser interface {
	// Open opens a visible window with an empty page. hear receives the messages of its pages, from
	// a goroutine of the browser's.
	Open(ctx context.Context, hear func(Message)) (Tab, error)
	Close()
}

// A Tab is a tab as a person sees it: a sequence of pages.
type Tab interface {
	// Navigate loads a page, and returns when it is loaded.
	Navigate(ctx context.Context, url string) error
	Reload(ctx context.Context) error
	// Back goes back in the tab's history, to a page that may be kept unchanged. It may return
	// before the page is shown.
	Back(ctx context.Context) error
	// Evaluate runs an expression in the page that returns a promise of a string, and returns that
	// string.
	Evaluate(ctx context.Context, expression string) (string, error)
	// Click clicks the middle of the first element of a CSS selector, as a person does. Type types
	// into it.
	Click(ctx context.Context, selector string) error
	Type(ctx context.Context, selector, text string) error
	// Hide hides the tab behind another one.
	Hide(ctx context.Context) error
	Close()
}

// A Message is a console.warn or console.error of a page, or an uncaught exception.
type Message struct {
	Uncaught bool
	Text     string
}

// Launch starts the browser of an engine, by its name: "firefox" or "webkit". InsecureHost is
// loopback there.
func Launch(ctx context.Context, name string) (Browser, error) {
	switch name {
	case "firefox":
		return LaunchFirefox(ctx, FirefoxOptions{})
	case "webkit":
		return launchWebkit()
	}
	return nil, fmt.Errorf("engine %q is unknown: want firefox or webkit", name)
}

// InsecureHost is a name for loopback that gives no secure context.
const InsecureHost = "shop.example"

// middle returns an expression for the middle of an element in the viewport, as JSON [x, y]. It
// scrolls the element into view.
func middle(selector string) string {
	quoted, _ := json.Marshal(selector)
	return fmt.Sprintf(`(async () => {
		const element = document.querySelector(%s);
		if (!element) throw new Error("no element is " + %[1]s);
		element.scrollIntoView({ block: "center" });
		const { x, y, width, height } = element.getBoundingClientRect();
		return JSON.stringify([Math.floor(x + width / 2), Math.floor(y + height / 2)]);
	})()`, quoted)
}

// A source is an input device with its actions: a pointer, or a keyboard.
type source map[string]any

// click returns a pointer's actions for a click at a point.
func click(point []int) []source {
	return []source{{"type": "pointer", "id": "mouse", "actions": []map[string]any{
		{"type": "pointerMove", "x": point[0], "y": point[1]},
		{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0},
	}}}
}

// keys returns a keyboard's actions for a text.
func keys(text string) []source {
	var actions []map[string]any
	for _, key := range text {
		actions = append(actions, map[string]any{"type": "keyDown", "value": string(key)},
			map[string]any{"type": "keyUp", "value": string(key)})
	}
	return []source{{"type": "key", "id": "keyboard", "actions": actions}}
}

// An actor is a tab with input devices.
type actor interface {
	Tab
	act(ctx context.Context, sources []source) error
}

func clickOn(ctx context.Context, t actor, selector string) error {
	text, err := t.Evaluate(ctx, middle(selector))
	var point []int
	if err == nil {
		err = json.Unmarshal([]byte(text), &point)
	}
	if err != nil {
		return err
	}
	return t.act(ctx, click(point))
}

func typeInto(ctx context.Context, t actor, selector, text string) error {
	if err := clickOn(ctx, t, selector); err != nil {
		return err
	}
	return t.act(ctx, keys(text))
}

// closing is how long a browser may take to close a tab.
const closing = 10 * time.Second
