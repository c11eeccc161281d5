package main

import (
	"bytes"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The story happens: a change is in a frame before the agent knows of it, and in one in which it does. What comes out
// fits into a README.
func TestTheStoryHappens(t *testing.T) {
	frames, err := film(t.Context(), "../../dist", "../../bin/pagewire")
	if err != nil {
		t.Fatal(err)
	}
	first, end := frames[0].known, frames[len(frames)-1].known
	if text := first.seen["document"]; !strings.Contains(text, "apples") || strings.Contains(text, "milk") {
		t.Errorf("at first the agent has read %q", text)
	}
	if text := end.seen["document"]; !strings.Contains(text, "apples and milk") {
		t.Errorf("in the end the agent has read %q", text)
	}
	if text := end.seen["selection"]; !strings.Contains(text, `"text":"milk"`) {
		t.Errorf("in the end the agent knows of the selection %q", text)
	}
	told := 0
	for _, l := range end.lines {
		if l.Kind == "told" {
			told++
		}
	}
	if told < 2 {
		t.Errorf("the agent was told %d times, want it of the document and of the selection: %v", told, end.lines)
	}

	moving, err := animate(frames)
	if err != nil {
		t.Fatal(err)
	}
	movie, err := gif.DecodeAll(bytes.NewReader(moving))
	if err != nil {
		t.Fatal(err)
	}
	if len(movie.Image) < 15 || movie.Config.Width != width || movie.Config.Height != height {
		t.Errorf("%d frames of %d x %d", len(movie.Image), movie.Config.Width, movie.Config.Height)
	}
	if shown := length(frames); shown > 12*time.Second || len(moving) > 1_000_000 {
		t.Errorf("%s and %d bytes, want 12 s and 1 MB at most", shown, len(moving))
	}
	still, err := poster(frames)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(still)); err != nil {
		t.Error(err)
	}
}

// The pictures that are there are what the script makes, in form.
func TestThePicturesAreThere(t *testing.T) {
	for _, name := range []string{"story.gif", "story.png"} {
		info, err := os.Stat(filepath.Join("../../demo", name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() < 10_000 || info.Size() > 1_000_000 {
			t.Errorf("demo/%s has %d bytes", name, info.Size())
		}
	}
}
