// Command pagewire-node is a node of a fleet: `pagewire node` runs it. It is a separate program, so
// that the desktop's program carries neither NATS nor the verification of tokens.
//
// Each option is a flag (--public-url), a variable of the environment (PAGEWIRE_PUBLIC_URL), or a
// member of the configuration file ("public-url"): the first of these that is set counts. An option
// with several values is a list with commas in the environment, and an array in the file. Issuers
// are in the file alone.
//
// Exit status 0: a signal ended it. 1: it failed. 2: its options are wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/node/process"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// version is the version in js/package.json. The build sets it.
var version string

func versionName() string { return cli.Version(version) }

// serve runs a node. Tests replace it.
var serve = process.Run

func run(ctx context.Context, args []string, env func(string) (string, bool),
	stdout, stderr io.Writer) int {
	var o process.Options
	cmd := command(&o, env)
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	sentence := strings.TrimPrefix(err.Error(), process.ErrUsage.Error()+": ")
	fmt.Fprintln(stderr, "pagewire-node:", sentence)
	if errors.Is(err, process.ErrUsage) || errors.Is(err, errUsage) {
		fmt.Fprintln(stderr, "pagewire-node: see pagewire-node --help")
		return 2
	}
	return 1
}

// errUsage wraps errors in the options.
var errUsage = errors.New("options")

func command(o *process.Options, env func(string) (string, bool)) *cobra.Command {
	var level, format, file string
	cmd := &cobra.Command{
		Use:   "pagewire-node",
		Short: "Serve a service's open pages to its own agents",
		Long: "A node is one process of a fleet. The pages of a service connect to it with a ticket of the service.\n" +
			"The agents of the service connect by Streamable HTTP with an OAuth access token. Each agent sees the\n" +
			"pages of its own user, at whatever node they are. Each flag is also an environment variable\n" +
			"(PAGEWIRE_PUBLIC_URL) and a member of the configuration file (\"public-url\"). The file also lists the\n" +
			"issuers of tickets and tokens.",
		Example: "  pagewire-node --config node.json --listen 127.0.0.1:8443 --public-url https://live.example",
		Version: versionName(), SilenceErrors: true, SilenceUsage: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := configure(cmd, o, env, file); err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			log, err := cli.Log(cmd.ErrOrStderr(), level, format)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			o.Version, o.Log = versionName(), log
			if o.Traces == "" {
				o.Traces = tracesByEnvironment(env)
			}
			return serve(cmd.Context(), *o)
		},
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w: %w", errUsage, err)
	})
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&file, "config", "", "configuration `file`, in JSON")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8443",
		"`address` for pages (/page) and agents (/mcp)")
	f.StringVar(&o.PublicURL, "public-url", "",
		"`URL` by which clients reach the fleet; tickets and tokens are for it")
	f.StringVar(&o.Admin, "admin", "", "`address` for /healthz, /readyz and /metrics")
	f.StringVar(&o.NodeURL, "node-url", "",
		"`URL` by which other nodes reach this one (default that of --listen)")
	f.StringVar(&o.NodeCA, "node-ca", "",
		"`file` of the authority of nodes' certificates (default the system's)")
	f.StringVar(&o.TLSCert, "tls-cert", "", "`file` of the certificate for --listen, in PEM")
	f.StringVar(&o.TLSKey, "tls-key", "", "`file` of its key")
	f.BoolVar(&o.InsecureHTTP, "insecure-http", false,
		"let --listen be reached from other machines without TLS: what is before it speaks TLS")
	f.StringSliceVar(&o.AllowHosts, "allow-host", nil,
		"answer requests that call this node by this `name` too")
	f.StringSliceVar(&o.AllowOrigins, "allow-origin", nil,
		"let agents in pages of this `origin` ask at /mcp")
	f.DurationVar(&o.DrainDelay, "drain-delay", process.DefaultDrainDelay,
		"how `long` a node that is to end serves on, and says at /readyz that it is not ready")
	f.DurationVar(&o.Drain, "drain", 0,
		"how `long` pages may take to go elsewhere when the node ends (default 20s)")
	f.IntVar(&o.Pages, "max-pages", 0, "`number` of pages at this node (default 100,000)")
	f.IntVar(&o.UserPages, "max-user-pages", 0,
		"`number` of pages that one user has at this node (default 256)")
	f.IntVar(&o.Users, "max-users", 0,
		"`number` of users that have agents at this node (default 20,000)")
	f.IntVar(&o.OtherUsers, "max-other-users", 0,
		"`number` of users for whom one agent that may act for any has agents "+
			"at this node (default 1,000)")
	f.IntVar(&o.UserMessages, "user-messages", 0,
		"`number` of messages a second that one user's pages may cost on the "+
			"bus (default 2,000)")
	f.BoolVar(&o.DebuggingTools, "debugging-tools", false,
		"show agents also the tools that pages have for their developers")
	f.BoolVar(&o.NoSubscriptions, "no-subscriptions", false,
		"offer agents no subscriptions to resources: they get method not found")
	f.StringVar(&o.Traces, "traces", "",
		"`URL` of a receiver of traces, by OTLP over HTTP (default that of "+
			"OTEL_EXPORTER_OTLP_ENDPOINT; without either there are none)")
	busFlags(cmd, o)
	webhookFlags(cmd, o)
	f.StringVar(&level, "log-level", "info",
		"log to standard error from this `level` on: debug, info, warn, error")
	f.StringVar(&format, "log-format", "json", "log as text or json")
	return cmd
}

// tracesByEnvironment returns the endpoint for traces from OpenTelemetry's own variables; "" if
// they set none, or switch traces off.
func tracesByEnvironment(env func(string) (string, bool)) string {
	if off, _ := env("OTEL_SDK_DISABLED"); strings.EqualFold(off, "true") {
		return ""
	}
	if exporter, ok := env("OTEL_TRACES_EXPORTER"); ok && exporter != "otlp" && exporter != "" {
		return ""
	}
	if at, _ := env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); at != "" {
		return at
	}
	if at, _ := env("OTEL_EXPORTER_OTLP_ENDPOINT"); at != "" {
		return strings.TrimSuffix(at, "/") + "/v1/traces"
	}
	return ""
}

func busFlags(cmd *cobra.Command, o *process.Options) {
	f := cmd.Flags()
	f.StringVar(&o.Cluster, "cluster", "",
		"`address` where other nodes find this one; without it, and without --nats, "+
			"it is alone")
	f.StringVar(&o.Advertise, "advertise", "",
		"`address` that other nodes are told in place of --cluster")
	f.StringSliceVar(&o.Join, "join", nil, "`address` of another node's --cluster; may be repeated")
	f.StringVar(&o.SecretFile, "secret-file", "",
		"`file` of what all nodes know; not needed with certificates")
	f.StringVar(&o.ClusterCert, "cluster-cert", "",
		"`file` of the certificate that this node shows to others, in PEM")
	f.StringVar(&o.ClusterKey, "cluster-key", "", "`file` of its key")
	f.StringVar(&o.ClusterCA, "cluster-ca", "",
		"`file` of the authority of all nodes' certificates")
	f.StringVar(&o.NATS, "nats", "", "`URL` of a cluster of NATS, in place of all of these")
	f.StringVar(&o.NATSCreds, "nats-creds", "", "`file` of the credentials for it")
	f.StringVar(&o.NATSCA, "nats-ca", "",
		"`file` of the authority of its certificates (default the system's)")
	f.StringVar(&o.Space, "space", "pagewire",
		"`name` that begins all subjects: fleets of other names share a cluster")
}

func webhookFlags(cmd *cobra.Command, o *process.Options) {
	f := cmd.Flags()
	f.StringVar(&o.Name, "name", "",
		"`name` of this node, which stays the same; a node with --store has one")
	f.StringVar(&o.Store, "store", "",
		"`directory` in which this node keeps subscriptions for all: at one node, or three")
	f.StringVar(&o.StoreKey, "store-key", "",
		"`file` of the key that encrypts them, the same at all nodes: nodes that "+
			"have it deliver webhooks")
	f.StringSliceVar(&o.WebhookAllow, "webhook-allow", nil,
		"let webhooks go to this `network` too, which is not public")
	f.StringVar(&o.WebhookCA, "webhook-ca", "",
		"`file` of the authority of endpoints' certificates (default the system's)")
	f.BoolVar(&o.NoWebhookControl, "no-webhook-control", false,
		"send no envelopes about gaps and ends of subscriptions")
}
