package docs

import (
	"os"
	"sync"

	"github.com/pagewire/pagewire/e2e/npmregistry"
)

// packedRegistry is the registry from which a block with the word packed installs, unchanged: npm
// asks the registry that npm_config_registry names.
var packedRegistry = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pagewire-registry-")
	if err != nil {
		return "", err
	}
	ends = append(ends, func() { os.RemoveAll(dir) })
	url, stop, err := npmregistry.Serve(root, dir)
	if err == nil {
		ends = append(ends, stop)
	}
	return url, err
})
