package main

import (
	"bufio"
	"cmp"
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
	configuration // of each client
	yes, ended    bool
	timeout       time.Duration
	answers       chan string
}

func setupCommand() *cobra.Command {
	w := wizard{answers: make(chan string)}
	w.write, w.part = true, true
	cmd := &cobra.Command{
		Use:   "setup [AGENT...] [-- FLAG...]",
		Short: "Connect the agent programs and browsers of this computer",
		Long: "Finds agent programs and browsers, asks which to set up, and does what\n" +
			"pagewire config --live and pagewire extension install do. An entry that is there\n" +
			"stays. Then it waits until an agent sees a page, and opens a demo if there is\n" +
			"none. Without a terminal it needs --yes, and waits only with --timeout.\n" +
			"Flags after -- are for pagewire serve.",
		Example:   "  pagewire setup\n  pagewire setup codex --yes",
		ValidArgs: clientNames(anyClient),
		RunE: func(cmd *cobra.Command, args []string) error {
			w.cmd = cmd
			if cli.IsTerminal(cmd.InOrStdin()) {
				go w.listen()
			} else if !w.yes {
				return usageError{cmd, errors.New("there is no terminal to ask you on: add --yes")}
			} else if !cmd.Flags().Changed("timeout") {
				w.timeout = 0
			}
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				args, w.Serve = args[:dash:dash], args[dash:]
			}
			return w.run(args)
		},
	}
	cmd.Flags().BoolVarP(&w.yes, "yes", "y", false, "ask nothing, and do what it proposes")
	cmd.Flags().BoolVar(&w.Force, "force", false, "replace a different entry of the same name")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 2*time.Minute,
		"fail if no agent sees a page after this `time`; 0 does not wait")
	return cmd
}

func (w *wizard) run(names []string) error {
	var chosen []*configuration
	var titles, browsers []string
	named := len(names) > 0
	for _, p := range programs() {
		titles = append(titles, p.Title)
		if !named {
			names = append(names, p.Name)
		}
	}
	w.Keep = len(w.Serve) == 0
	for _, name := range names {
		c := w.configuration
		if err := c.check(name); err != nil {
			return usageError{w.cmd, err}
		}
		chosen = append(chosen, &c)
	}
	places, err := clientconfig.Here()
	if err != nil {
		return err
	}
	used, _ := nativehost.Used(places, "") // it fails if there are none
	for _, h := range used {
		browsers = append(browsers, h.Browser)
	}
	found := cmp.Or(strings.Join(slices.Compact(browsers), ", "), "none")
	w.say("agent programs: " + cmp.Or(strings.Join(titles, ", "), "none") + "; browsers: " + found)
	chosen = slices.DeleteFunc(chosen, func(c *configuration) bool {
		return !named && !w.ask("Set up "+c.Client.Title+"?")
	})
	live := slices.ContainsFunc(chosen, func(c *configuration) bool { return c.Client.IsLive() }) &&
		w.ask("Tell models when a page changes?")
	o, _ := parseServe(w.Serve) // check has reported an error
	extension := false
	if _, err := browser.Find(); len(chosen) == 0 || o.launch || o.Flags.Chrome != "" {
	} else if len(used) > 0 {
		extension = w.ask("Let the Pagewire extension reach agents from " + found + "?")
	} else if err == nil && launched.HasDisplay() && w.ask("Let agents launch a browser?") {
		w.Serve = append(w.Serve, "--launch")
	}
	if w.ended {
		return errors.New("interrupted, and nothing was written")
	} else if len(chosen) == 0 {
		return cli.Hint(errors.New("no agent program was chosen, and nothing was written"),
			"if yours was not found, name it, as in: pagewire setup codex; all names: "+manual+"/clients.md")
	}

	var clients []clientconfig.Client
	var failed error
	for _, c := range chosen {
		c.Serve, c.live = w.Serve, live && c.Client.IsLive()
		clients = append(clients, c.Client)
		err := cli.Interruptible(w.cmd.Context(), c.run)
		if err != nil && (len(chosen) == 1 || w.cmd.Context().Err() != nil) {
			return err
		} else if err != nil { // the others have nothing to do with it
			w.say(plain(err.Error()))
			w.say("→ " + cli.Remedy(err))
			failed = errors.New(c.Client.Title + " is not set up")
		}
	}
	if extension {
		if err := installHosts(w.cmd, "", false); err != nil {
			w.say(plain(err.Error()) + "; see pagewire extension install --help")
		}
		w.say("to show agents any site, add the extension to your browser: " + manual + "/extension.md")
	}
	if failed != nil {
		return failed
	}
	return w.wait(o.Hub, clients)
}

// wait waits until an agent of one of the clients sees a page. It opens a page if there is none.
func (w *wizard) wait(hub string, clients []clientconfig.Client) error {
	began, said, opened := time.Now(), "", ""
	if w.timeout > 0 {
		w.say("waiting until an agent sees a page; Ctrl+C ends this, and undoes nothing")
	}
	for {
		f, demo := connection(w.cmd.Context(), hub, clients)
		switch {
		case f.Do == "":
			_, err := fmt.Fprintln(w.cmd.OutOrStdout(), f.Says)
			return err
		case f.Do != said:
			said = f.Do
			w.say(f.Says)
			w.say("→ " + f.Do)
		case demo != opened && demo != "":
			opened = demo
			go func() { _ = startBrowser(demo) }() // if it cannot, f says what to do
		case w.cmd.Context().Err() != nil:
			return errors.New("interrupted; " + f.Says)
		case w.timeout <= 0:
			return nil
		case time.Since(began) > w.timeout:
			return cli.Hint(fmt.Errorf("gave up after %v; %s", w.timeout, f.Says), f.Do)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// listen passes on the lines of a person.
func (w *wizard) listen() {
	defer close(w.answers)
	for lines := bufio.NewScanner(w.cmd.InOrStdin()); lines.Scan(); {
		w.answers <- strings.ToLower(strings.TrimSpace(lines.Text()))
	}
}

// ask asks a question, to which Enter is yes. Once the answers have ended, it says no.
func (w *wizard) ask(question string) bool {
	if w.yes {
		w.say(question + " yes")
		return true
	}
	for !w.ended {
		fmt.Fprint(w.cmd.ErrOrStderr(), question, " [Y/n] ")
		select {
		case answer, more := <-w.answers:
			if more {
				return answer == "" || answer[0] == 'y'
			}
		case <-w.cmd.Context().Done():
		}
		w.ended = true
	}
	return false
}
