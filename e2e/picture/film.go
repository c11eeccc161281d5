package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/chromedp/chromedp/remote"

	"github.com/pagewire/pagewire/bridge/gateway/browser"
)

const (
	width, height = 900, 430 // of the picture, in pixels
	pageWidth     = 420      // of the page's part of it
	margin        = 16       // that the page leaves at its sides
	takes         = time.Minute
)

// A frame is a picture, for how long it is shown, and what the agent knew when it was taken.
type frame struct {
	image  image.Image
	shown  time.Duration
	known  known
	poster bool
}

//go:embed stage.html
var stagePage string

// A camera takes a frame of the page and of the agent beside it. The page is in the browser that the gateway watches,
// the stage in one of its own, so that it is no tab of the agent's.
type camera struct {
	page, stage context.Context
	agent       *agent
	frames      []frame
	caption     string
	before      map[string]string // what the agent had read before the person did something: all else is new
}

// film plays the story.
func film(ctx context.Context, dist, gateway string) ([]frame, error) {
	ctx, cancel := context.WithTimeout(ctx, takes)
	defer cancel()
	site := httptest.NewServer(http.FileServer(http.Dir(dist)))
	defer site.Close()
	dir, err := os.MkdirTemp("", "pagewire-picture-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	watched, err := browser.Start(ctx, browser.StartOptions{})
	if err != nil {
		return nil, err
	}
	defer watched.Close()
	allocator, detach := remote.NewAllocator(ctx, watched.URL)
	defer detach()
	tab, closeTab := chromedp.NewContext(allocator)
	defer closeTab()
	stage, closeStage, err := browser.Launch(ctx, browser.Options{Flags: []string{"--lang=en", "--disable-lcd-text"}})
	if err != nil {
		return nil, err
	}
	defer closeStage()
	c := &camera{page: tab, stage: stage}
	if err := c.set(site.URL + "/demo/1-live-document/"); err != nil {
		return nil, err
	}
	if c.agent, err = startAgent(ctx, gateway, watched.URL, dir); err != nil {
		return nil, err
	}
	defer c.agent.session.Close()
	if err := c.agent.watch(ctx, "document", "selection"); err != nil {
		return nil, err
	}
	err = c.play(ctx)
	return c.frames, err
}

// set opens the page and the stage.
func (c *camera) set(url string) error {
	if err := chromedp.Do(c.page, chromedp.EmulateViewport(pageWidth+2*margin, 1200),
		chromedp.Navigate(url)); err != nil {
		return fmt.Errorf("open the page: %w", err)
	}
	return chromedp.Do(c.stage, chromedp.EmulateViewport(width, height),
		chromedp.Navigate("data:text/html;base64,"+base64.StdEncoding.EncodeToString([]byte(stagePage))))
}

// play is the story: a person types and then selects, and the agent is told and reads.
func (c *camera) play(ctx context.Context) error {
	const words, word = " and milk", "milk"
	if err := chromedp.Do(c.page, chromedp.Click(chromedp.CSS("#document-text")),
		chromedp.Evaluate[chromedp.Void](`document.activeElement.setSelectionRange(1e9, 1e9)`)); err != nil {
		return err
	}
	c.before = c.agent.state().seen
	c.caption = "An AI agent has subscribed to a web page."
	if err := c.take(1900 * time.Millisecond); err != nil {
		return err
	}
	c.caption = "The person types, and the agent is told."
	for i := range words {
		if err := c.key(ctx, chromedp.KeyEvent(words[i:i+1]), "document", "apples"+words[:i+1]); err != nil {
			return err
		}
	}
	if err := c.take(1200 * time.Millisecond); err != nil {
		return err
	}
	c.caption = "It reads what has changed. Nobody polls."
	if err := c.take(2200 * time.Millisecond); err != nil {
		return err
	}
	c.frames[len(c.frames)-1].poster = true
	c.before = c.agent.state().seen
	c.caption = "The same for what the person selects."
	// Naming the command makes the key work on macOS too, where the system gives keys a meaning.
	left := func(p *input.DispatchKeyEventParams) { p.Commands = []string{"MoveLeftAndModifySelection"} }
	for n := range word {
		press := chromedp.KeyEvent(kb.ArrowLeft, chromedp.KeyModifiers(chromedp.ModifierShift), left)
		if err := c.key(ctx, press, "selection", `"text":"`+word[len(word)-1-n:]+`"`); err != nil {
			return err
		}
	}
	return c.take(2800 * time.Millisecond)
}

// key has the person press a key, and takes two frames: before the agent knows, and then.
func (c *camera) key(ctx context.Context, press chromedp.Action[chromedp.Void], name, want string) error {
	if err := chromedp.Do(c.page, press); err != nil {
		return err
	}
	if err := c.take(60 * time.Millisecond); err != nil {
		return err
	}
	if err := c.agent.until(ctx, name, want); err != nil {
		return err
	}
	return c.take(90 * time.Millisecond)
}

// take takes a frame, of the page as it is and of what the agent knows.
func (c *camera) take(shown time.Duration) error {
	seen, err := c.pagePicture()
	if err != nil {
		return fmt.Errorf("take a picture of the page: %w", err)
	}
	k := c.agent.state()
	show, err := json.Marshal(map[string]any{
		"page": "data:image/png;base64," + base64.StdEncoding.EncodeToString(seen), "caption": c.caption,
		"lines": k.lines, "seen": []map[string]string{c.value(k, "document"), c.value(k, "selection")},
	})
	if err != nil {
		return err
	}
	if err := chromedp.Do(c.stage, chromedp.Evaluate[chromedp.Void]("show("+string(show)+")",
		chromedp.EvalAwaitPromise)); err != nil {
		return fmt.Errorf("show it on the stage: %w", err)
	}
	picture, err := chromedp.Run(c.stage, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return err
	}
	c.frames = append(c.frames, frame{image: decoded, shown: shown, known: k})
	return nil
}

// pagePicture is the part of the page in which the person types, as it is on the screen: chromedp's picture of an
// element has the page laid out anew for it, and that may be under way still.
func (c *camera) pagePicture() ([]byte, error) {
	clip, err := chromedp.Run(c.page, chromedp.Evaluate[page.Viewport](
		`(({x, y, width, height}) => ({x, y, width, height, scale: 1}))(document.querySelector("#note").getBoundingClientRect())`))
	if err != nil {
		return nil, err
	}
	taken, err := chromedp.Call(c.page, page.CaptureScreenshot, page.CaptureScreenshotParams{
		Format: page.CaptureScreenshotFormatPng, Clip: &clip})
	if err != nil {
		return nil, err
	}
	return taken.Data, nil
}

// value is what the agent has read of a resource, split where it differs from what it had read before.
func (c *camera) value(k known, name string) map[string]string {
	text, before := strings.TrimSpace(k.seen[name]), strings.TrimSpace(c.before[name])
	from := 0
	for from < min(len(text), len(before)) && text[from] == before[from] {
		from++
	}
	to := 0
	for to < min(len(text), len(before))-from && text[len(text)-1-to] == before[len(before)-1-to] {
		to++
	}
	return map[string]string{"name": name, "same": text[:from], "fresh": text[from : len(text)-to],
		"rest": text[len(text)-to:]}
}
