package access

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pagewire/pagewire/bridge/internal/secret"
)

// TokenFileEnv is the environment variable with the path of the token file.
const TokenFileEnv = "PAGEWIRE_TOKEN_FILE"

// TokenFile returns the path of the token: the value of TokenFileEnv, or pagewire/token in the
// user's configuration directory.
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

// Token returns the token that the gateways of this user share. It reads the file at path; "" means
// TokenFile's. If the file does not exist, it makes one with a new token: 32 random bytes as
// base64url, in a file of mode 0600 (and a directory of mode 0700, if it must make that). If
// several processes find no file, only one makes it, and all get the same token. A file that is
// empty, half written, a link, not regular, another user's, or readable by others is an error of
// one sentence, and is not changed.
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
