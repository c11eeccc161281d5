package main

import (
	"fmt"
	"net"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// The values of flags, as several commands check them.

// checkOrigins checks the values of a flag: origins, or patterns with * as the host's first label.
func checkOrigins(flag string, origins []string) error {
	for _, origin := range origins {
		if profile, is := strings.CutPrefix(origin, gateway.ProfilePrefix); is && flag == "only" {
			if err := checkProfile(flag, profile); err != nil {
				return err
			}
			continue
		}
		if !weborigin.IsPattern(origin) {
			return fmt.Errorf(
				"--%s %q: want an origin such as https://example.com, or https://*.example.com",
				flag, origin)
		}
	}
	return nil
}

// checkProfile checks the name of a profile. Lists show it in this form.
func checkProfile(flag, name string) error {
	if name == "" || len(name) > gateway.MaxProfile ||
		name != strings.Join(strings.Fields(name), " ") {
		return fmt.Errorf("--%s %q: want a profile's name of 1 to %d bytes, with single spaces",
			flag, name, gateway.MaxProfile)
	}
	return nil
}

// checkInline removes a slash at the end of origins, and checks them.
func checkInline(origins []string) error {
	for i, origin := range origins {
		origins[i] = strings.TrimSuffix(origin, "/")
	}
	return checkOrigins("inline", origins)
}

// address checks an address to listen on. local means that only this machine reaches it.
func address(flag, addr string) (local bool, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err == nil && port != "" {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return false, fmt.Errorf("--%s %q: want host and port, such as 127.0.0.1:8000", flag, addr)
	}
	return host != "" && weborigin.IsLoopback("http://"+addr), nil
}
