// Package browsertest launches a browser for tests, under the flags of package browser: as a person has it, without a
// window. It is no part of the product, which launches one by package launched.
package browsertest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pagewire/pagewire/bridge/desktop/browser"
)

// Options configure Launch. The zero value is a headless browser, found by browser.Find.
type Options struct {
	// Flags are added to ours, such as "--lang=de". A flag with the name of one of ours replaces ours.
	Flags []string
	// Env is added to the environment of this process, as NAME=value.
	Env []string
}

// closeTimeout is how long a browser may take to close by itself before it is killed. It takes about 0.1 s.
const closeTimeout = 5 * time.Second

// Launch runs a browser with a new, empty profile. ctx is chromedp's context of the first tab; chromedp.NewContext(ctx)
// makes further tabs. It ends when parent does or when the browser dies.
//
// close ends the browser, waits until the process is gone, and removes the profile. It is safe to call twice. It must
// be called: after a cancelled parent, the browser's processes may outlive this one by a moment.
func Launch(parent context.Context, o Options) (ctx context.Context, close func(), err error) {
	cmd, err := browser.Command(false, o.Flags, "")
	if err != nil {
		return nil, nil, err
	}
	// No flag sets the profile: chromedp makes a temporary one, and removes it after the last child process has ended.
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(cmd.Path), chromedp.Env(o.Env...)}
	for _, flag := range cmd.Args[1 : len(cmd.Args)-1] {
		name, value, hasValue := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		if hasValue {
			options = append(options, chromedp.Flag(name, value))
		} else {
			options = append(options, chromedp.Flag(name, true))
		}
	}
	allocator, stop := chromedp.NewExecAllocator(parent, options...)
	tab, cancelTab := chromedp.NewContext(allocator)
	close = func() {
		limited, cancel := context.WithTimeout(tab, closeTimeout)
		defer cancel()
		if tab.Err() == nil {
			chromedp.Cancel(limited) // its error changes nothing: stop kills the rest
		}
		cancelTab()
		stop()
	}
	if err := chromedp.Do(tab); err != nil {
		close()
		return nil, nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return tab, close, nil
}
