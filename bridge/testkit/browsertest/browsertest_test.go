package browsertest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/pagewire/pagewire/bridge/desktop/browser"
	"github.com/pagewire/pagewire/bridge/testkit"
)

func TestLaunchSaysWhatToDoWhenThereIsNone(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a browser is found by its absolute path too")
	}
	t.Setenv("PAGEWIRE_BROWSER", "")
	t.Setenv("PATH", t.TempDir())
	if _, _, err := Launch(context.Background(), Options{}); err != browser.ErrNone {
		t.Errorf("Launch: %v; want ErrNone", err)
	}
}

func TestLaunchLoadsAPageAndLeavesNothing(t *testing.T) {
	if _, err := browser.Find(); err != nil {
		t.Fatal(err) // never skipped: make browser gets one
	}
	profiles := t.TempDir()
	t.Setenv("TMPDIR", profiles)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<!doctype html><title>here</title>"))
	}))
	defer site.Close()

	parent, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	ctx, close, err := Launch(parent, Options{Flags: []string{"--lang=de", "--user-agent=Pagewire/1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer close()
	process := chromedp.FromContext(ctx).Browser.Process()

	title, agent := visit(t, ctx, site.URL)
	if title != "here" || agent != "Pagewire/1" {
		t.Errorf("title %q, user agent %q; want the page's title and the agent of the extra flag", title, agent)
	}
	second, closeSecond := chromedp.NewContext(ctx)
	title, _ = visit(t, second, site.URL)
	if title != "here" || chromedp.FromContext(second).Browser.Process().Pid != process.Pid {
		t.Error("a context of the context is not a tab of the same browser")
	}
	closeSecond()
	if made := profilesIn(t, profiles); len(made) != 1 {
		t.Errorf("while it runs there are profiles %v; want one, under TMPDIR", made)
	}

	close()
	close()
	if left := profilesIn(t, profiles); len(left) > 0 {
		t.Errorf("after close the profile is still there: %v", left)
	}
	if ctx.Err() == nil {
		t.Error("after close the context lives on")
	}
	testkit.Eventually(t, "after close no process is left", func() bool {
		return len(processesUsing(t, profiles)) == 0
	})
}

func TestLaunchReportsABrowserThatDoesNotStart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the executable bit is not what makes a program on Windows")
	}
	path := filepath.Join(t.TempDir(), "chromium")
	testkit.OK(t, os.WriteFile(path, []byte("#!/bin/sh\nexit 3\n"), 0o755))
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("PAGEWIRE_BROWSER", path)
	_, _, err := Launch(t.Context(), Options{})
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Launch of a program that exits at once: %v; want an error that names it", err)
	}
}

// visit loads a page and returns its title and its navigator.userAgent.
func visit(t *testing.T, ctx context.Context, url string) (title, agent string) {
	t.Helper()
	testkit.OK(t, chromedp.Do(ctx, chromedp.Navigate(url)))
	title = testkit.Must(chromedp.Run(ctx, chromedp.Title()))(t)
	agent = testkit.Must(chromedp.Run(ctx, chromedp.Evaluate[string]("navigator.userAgent")))(t)
	return title, agent
}

// profilesIn lists the browser profiles under a directory for temporary files.
func profilesIn(t *testing.T, dir string) []string {
	t.Helper()
	return testkit.Must(filepath.Glob(filepath.Join(dir, "chromedp-runner*")))(t)
}

// processesUsing lists the command lines that name dir. It is empty on systems other than Linux.
func processesUsing(t *testing.T, dir string) []string {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []string
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), dir) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
