//go:build !js

package process

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// A certificate is one in two files, which is read anew when they have changed: certificates are renewed every few
// weeks, and a node has its pages for as long as it can.
type certificate struct {
	cert, key string // files in PEM
	log       *slog.Logger
	now       func() time.Time

	mu     sync.Mutex
	last   *tls.Certificate
	stamp  [2]time.Time // of the files, when they were read
	looked time.Time
}

// lookEvery is how often the files are looked at: no more often than there is a handshake.
const lookEvery = time.Second

// newCertificate reads one. It fails where that is none.
func newCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, log: log, now: time.Now}
	err := c.read(c.stamps())
	return c, err
}

// stamps are when the files were changed; zero for one that is not there.
func (c *certificate) stamps() (stamp [2]time.Time) {
	for i, file := range []string{c.cert, c.key} {
		if info, err := os.Stat(file); err == nil {
			stamp[i] = info.ModTime()
		}
	}
	return stamp
}

// read is called with mu held, or by who made c.
func (c *certificate) read(stamp [2]time.Time) error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.last, c.stamp = &pair, stamp
	return nil
}

// get is the certificate now: where the files are none any more, or one is written and the other not yet, the last.
func (c *certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.looked) > lookEvery {
		c.looked = now
		if stamp := c.stamps(); stamp != c.stamp {
			if err := c.read(stamp); err != nil {
				c.log.Warn("a certificate has changed and cannot be read: the last one stays", "file", c.cert, "error", err)
			} else {
				c.log.Info("a certificate has changed", "file", c.cert)
			}
		}
	}
	return c.last
}

// config has both ends of connections show it.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return c.get(), nil
		},
	}
}
