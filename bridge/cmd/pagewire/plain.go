package main

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/pflag"
)

// inPlainWords are texts of Go's libraries and of systems, with what a person reads instead. They
// are found by their text, since the daemon and other programs send errors as texts.
var inPlainWords = [][2]string{
	{`(^|: )(?:Get|Post) "[^"]*": `, `$1`},
	{`(?:connection closed: )?calling "[^"]*": .*(?:EOF|closed|reset|broken pipe).*`,
		`the connection to pagewire serve ended`},
	{`calling "[^"]*": `, ``},
	{`(^|: )dial (?:tcp|unix) (\S+): .*refused.*`, `${1}nothing answers at $2`},
	{`(^|: )(?:dial|read|write|listen|accept) (?:tcp|unix)\d?:? `, `$1`},
	{`(^|: )(?:open|read|write|\w*stat|mkdir|rename|remove|unlink|fork/exec|\w+at) ` +
		`((?:[A-Z]:)?[^:]+): `, `$1$2: `},
	{`(^|: )lookup (\S+)(?: on \S+)?: `, `$1$2: `},
	{`(^|: )(?:connect|bind|tls|EvalSymlinks|parsing [a-z ]+): `, `$1`},
	{`no such file or directory|The system cannot find the \w+ specified.`, `it does not exist`},
	{`permission denied|operation not permitted|Access is denied.`, `you have no permission`},
	{`exec: ("[^"]*"): (?:executable file not found.*)?`, `$1 cannot be run`},
	{`exit status (\d+)`, `it failed with status $1`},
	{`address already in use`, `another program uses this address`},
	{`no such host`, `no computer has this name`},
	{`use of closed network connection|connection reset by peer|broken pipe`, `the connection ended`},
	{`readLoopPeekFailLocked.*|net/http: HTTP/.*|malformed HTTP .*`, `it does not speak HTTP`},
	{`context deadline exceeded|i/o timeout`, `no answer in time`},
	{`context canceled`, `interrupted`},
	{`(^|: )(?:json|jsontext): .*|(^|: )invalid character '.*|unexpected end of JSON input`,
		`$1${2}it is not valid JSON`},
	{`(^|: )(?:unexpected )?EOF\b`, `${1}it ended early`},
}

// An inWords error is in plain words. Names in it, which people type and pages choose, stay.
type inWords struct{ error }

// plain is the text of an error for people.
func plain(text string) string {
	for _, w := range inPlainWords {
		text = regexp.MustCompile(w[0]).ReplaceAllString(text, w[1])
	}
	return text
}

// flagError names a flag, its value, and what it takes.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	want, is := map[string]string{"bool": "want true or false", "int": "want a number",
		"duration": "want a time such as 30s"}[invalid.GetFlag().Value.Type()]
	if !is {
		want = invalid.Unwrap().Error()
	}
	return fmt.Errorf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), want)
}
