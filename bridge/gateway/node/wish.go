//go:build !js

package node

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"

	"github.com/pagewire/pagewire/bridge/gateway/browser/keeper"
	"github.com/pagewire/pagewire/bridge/gateway/weborigin"
)

// A wish is a browser that pages come from. It travels between gateways, as JSON text: it says where the browser is,
// and is never used but to dial it.
type wish struct {
	// Keeper is the name of a launched browser's keeper.
	Keeper string `json:"keeper,omitempty"`
	// URL is that of any other browser on this machine, or "auto" for one that is looked for each time.
	URL string `json:"url,omitempty"`
	// Inject says whether the browser at URL is to get the page layer. A keeper says so itself.
	Inject bool `json:"inject,omitempty"`
}

// is reports whether two wishes are one browser.
func (w wish) is(other wish) bool { return w.Keeper == other.Keeper && w.URL == other.URL }

// maxWishes bounds the browsers that others can name. A gateway needs one.
const maxWishes = 256

var errNoBrowser = errors.New("it names no browser of this machine")

// check refuses what no gateway of ours says.
func (w wish) check() error {
	if w.Keeper != "" {
		if w.URL != "" || w.Inject || !keeper.ValidName(w.Keeper) {
			return errNoBrowser
		}
		return nil
	}
	if w.URL == "auto" {
		return nil
	}
	u, err := url.Parse(w.URL)
	schemes := []string{"http", "https", "ws", "wss"}
	if err != nil || !slices.Contains(schemes, u.Scheme) || !weborigin.IsLoopback("http://"+u.Host) {
		return errNoBrowser
	}
	return nil
}

// parseWishes reads what a hub shares. What is no wish is left out.
func parseWishes(text string) ([]wish, error) {
	var all []wish
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(w wish) bool { return w.check() != nil })
	return all[:min(len(all), maxWishes)], nil
}
