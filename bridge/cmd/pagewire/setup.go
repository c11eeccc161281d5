package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/nativehost"
	"github.com/pagewire/pagewire/bridge/desktop/browser"
	"github.com/pagewire/pagewire/bridge/desktop/browser/launched"
)

// A wizard is one run of setup. It asks, does what config and extension install do, and waits for
// what doctor reports.
type wizard struct {
	cmd         *cobra.Command
	yes, noLive bool
	timeout     time.Duration
	answers     *bufio.Reader
	ended       bool // by a signal, or at the end of the answers
}

func setupCommand() *cobra.Command {
	var w wizard
	cmd := &cobra.Command{
		Use:   "setup [AGENT...] [-- FLAG...]",
		Short: "Connect the agent programs and browsers of this computer",
		Long: "Finds agent programs and browsers on this computer, asks which to set up, and\n" +
			"writes what pagewire config --live and pagewire extension install write. It\n" +
			"replaces nothing of yours. Then it waits until an agent sees a page, and opens a\n" +
			"demo page if there is none. Without a terminal it needs --yes, and waits only\n" +
			"with --timeout. Flags after -- go to pagewire serve. See pagewire config.",
		Example:   "  pagewire setup\n  pagewire setup codex --yes",
		ValidArgs: clientNames(anyClient),
		RunE: func(cmd *cobra.Command, args []string) error {
			w.cmd, w.answers = cmd, bufio.NewReader(cmd.InOrStdin())
			if terminal := cli.IsTerminal(cmd.InOrStdin()); !terminal && !w.yes {
				return usageError{cmd, errors.New("setup asks questions, and there is no terminal: " +
					"--yes takes what it proposes")}
			} else if !terminal && !cmd.Flags().Changed("timeout") {
				w.timeout = 0
			}
			dash := cmd.ArgsLenAtDash()
			if dash < 0 {
				dash = len(args)
			}
			return w.run(slices.Clip(args[:dash]), args[dash:])
		},
	}
	cmd.Flags().BoolVarP(&w.yes, "yes", "y", false, "ask nothing, and do what it proposes")
	cmd.Flags().BoolVar(&w.noLive, "no-live", false,
		"write no hooks and no plugin")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 2*time.Minute,
		"fail if no agent sees a page after this `time`; 0 does not wait")
	return cmd
}

func (w *wizard) run(names, flags []string) error {
	o, err := parseServe(flags)
	if err != nil {
		return usageError{w.cmd, err}
	}
	places, err := clientconfig.Here()
	if err != nil {
		return err
	}
	var titles, browsers []string
	named, given := len(names) > 0, len(flags) > 0
	for _, p := range programs() {
		titles = append(titles, p.Title)
		if !named {
			names = append(names, p.Name)
		}
	}
	used, _ := nativehost.Used(places, "") // it fails if there are none
	for _, h := range used {
		browsers = append(browsers, h.Browser)
	}
	browsers = slices.Compact(browsers)
	if len(names) == 0 {
		return cli.Hint(errors.New("no agent program was found on this computer"),
			"name yours, as in: pagewire setup codex")
	}
	var all, chosen []*configuration
	var clients []clientconfig.Client
	for _, name := range names {
		c := &configuration{cmd: w.cmd, write: true, part: true}
		if c.Serve = flags; c.check(name) != nil {
			return usageError{w.cmd, c.check(name)}
		}
		all = append(all, c)
	}
	w.say("found agent programs: " + list(titles) + "; browsers: " + list(browsers))
	for _, c := range all {
		if named || w.ask("Set up "+c.Client.Title+"?") {
			chosen, clients = append(chosen, c), append(clients, c.Client)
		}
	}
	live := !w.noLive && slices.ContainsFunc(clients, clientconfig.Client.IsLive) &&
		w.ask("Tell models when a page changes?")
	_, err = browser.Find()
	switch own := o.launch || o.Flags.Chrome != ""; {
	case len(chosen) == 0 || own:
		browsers = nil
	case len(browsers) > 0:
		if !w.ask("Let the Pagewire extension reach agents from " + list(browsers) + "?") {
			browsers = nil
		}
	case err == nil && launched.HasDisplay() && w.ask("Let agents launch a browser of their own?"):
		flags = append(flags, "--launch")
	}
	if w.ended {
		return errors.New("interrupted, and nothing was written")
	} else if len(chosen) == 0 {
		w.say("nothing was chosen, and nothing was written")
		return nil
	}

	err = cli.Interruptible(w.cmd.Context(), func() error {
		for _, c := range chosen {
			c.Serve, c.live = flags, live && c.Client.IsLive()
			err := c.run()
			if errors.Is(err, clientconfig.ErrOther) {
				err = cli.Hint(err, "it stays; to replace it, run this again after: pagewire config "+
					c.Client.Name+" --remove --force")
				if !given {
					w.say(err.Error() + ": " + cli.Remedy(err))
					continue
				}
			}
			if err != nil {
				return err
			}
		}
		if len(browsers) == 0 {
			return nil
		}
		if err := installHosts(w.cmd, "", false); err != nil {
			w.say(err.Error() + "; see pagewire extension install --help")
		}
		w.say("to show agents any other site, add the extension to your browser: " + manual + "/extension.md")
		return nil
	})
	if err != nil {
		return err
	}
	return w.wait(o.Hub, clients)
}

// wait waits until an agent of one of the clients sees a page. It opens a page if there is none.
func (w *wizard) wait(hub string, clients []clientconfig.Client) error {
	ctx, cancel := context.WithTimeout(w.cmd.Context(), max(w.timeout, 1))
	defer cancel()
	said, opened := "", false
	for {
		f, demo := connection(w.cmd.Context(), hub, clients, false)
		if f.Do == "" {
			_, err := fmt.Fprintln(w.cmd.OutOrStdout(), cli.Plain(f.Says))
			return err
		}
		if f.Says != said {
			said = f.Says
			w.say(f.Says + ": " + f.Do)
		}
		if w.timeout == 0 {
			return nil
		}
		if demo != "" && !opened {
			opened = true
			go func() { _ = startBrowser(demo) }() // without one, the sentence above says what to do
		}
		select {
		case <-time.After(100 * time.Millisecond):
			continue
		case <-ctx.Done():
		}
		if w.cmd.Context().Err() != nil {
			return errors.New("interrupted: " + f.Says)
		}
		return cli.Hint(fmt.Errorf("gave up after %v: %s", w.timeout, f.Says), f.Do)
	}
}

// ask asks a question, to which Enter is yes. Once the answers have ended, it says no.
func (w *wizard) ask(question string) bool {
	if w.yes {
		w.say(question + " yes")
	}
	for !w.yes && !w.ended {
		fmt.Fprint(w.cmd.ErrOrStderr(), question, " [Y/n] ")
		answer := make(chan string, 1)
		go func() {
			text, err := w.answers.ReadString('\n')
			if err != nil {
				text = "\x04" // as Ctrl+D is
			}
			answer <- text
		}()
		select {
		case <-w.cmd.Context().Done():
			w.ended = true
		case text := <-answer:
			switch strings.ToLower(strings.TrimSpace(text)) {
			case "", "y", "yes":
				return true
			case "n", "no":
				return false
			case "\x04":
				w.ended = true
			}
		}
	}
	return w.yes
}

func (w *wizard) say(sentence string) {
	fmt.Fprintln(w.cmd.ErrOrStderr(), "pagewire:", cli.Plain(plain(sentence)))
}

// list lists names in a sentence.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
