//go:build !js

package access

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pagewire/pagewire/bridge/gateway/internal/secret"
)

// TokenFileEnv names the environment variable that says where the token file is.
const TokenFileEnv = "PAGEWIRE_TOKEN_FILE"

// TokenFile is where the token is kept, unless somebody says otherwise: what TokenFileEnv names, else pagewire/token in
// the user's configuration directory.
func TokenFile() (string, error) {
	if path := os.Getenv(TokenFileEnv); path != "" {
		return path, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the token: %w; set %s", err, TokenFileEnv)
	}
	return filepath.Join(dir, "pagewire", "token"), nil
}

// Token gives the token that the gateways of this user share: what the file at path holds, or a new one that it puts
// there (32 random bytes as base64url; the file has mode 0600, and its directory 0700 if it has to be made). With path
// "" the file is TokenFile's. Of several processes that find no file one makes it, and all get the same. A file that is
// empty, half written, a link, no file, another user's, or that others can read is refused in one sentence, and left as
// it is.
func Token(path string) (string, error) {
	if path == "" {
		var err error
		if path, err = TokenFile(); err != nil {
			return "", err
		}
	}
	token, err := secret.Make(path)
	if err != nil {
		return "", fmt.Errorf("the token file: %w", err)
	}
	return token, nil
}
