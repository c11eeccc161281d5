// Command picture makes the moving picture of the README from the real thing: a person types into the page of demo 1 in
// a real browser, and an agent, the official Go SDK's client behind pagewire serve, is told and reads. Each frame is
// what the page shows and what the agent was given by then; nothing is drawn that did not happen.
//
//	go run ./e2e/picture -out demo    writes demo/story.gif, and demo/story.png for those who want no motion
//
// It needs what make build writes, and a browser.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	dist := flag.String("dist", "dist", "`directory` that make build wrote")
	gateway := flag.String("pagewire", "bin/pagewire", "the gateway's `binary`, which make build wrote")
	out := flag.String("out", "demo", "write story.gif and story.png into this `directory`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := write(ctx, *dist, *gateway, *out); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func write(ctx context.Context, dist, gateway, out string) error {
	frames, err := film(ctx, dist, gateway)
	if err != nil {
		return err
	}
	moving, err := animate(frames)
	if err != nil {
		return err
	}
	still, err := poster(frames)
	if err != nil {
		return err
	}
	for name, picture := range map[string][]byte{"story.gif": moving, "story.png": still} {
		if err := os.WriteFile(filepath.Join(out, name), picture, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("picture: %d frames, %.1f s; story.gif %d bytes, story.png %d\n", len(frames),
		length(frames).Seconds(), len(moving), len(still))
	return nil
}

// length is how long the frames are shown.
func length(frames []frame) (all time.Duration) {
	for _, f := range frames {
		all += f.shown
	}
	return all
}
