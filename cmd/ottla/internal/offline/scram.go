package offline

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"ottla/controller/metadata"
	"ottla/protocol/schema"
)

// mechanism is one of the two that Kafka has (ScramMechanism.java).
type mechanism struct {
	name string
	code int8
	hash func() hash.Hash
}

var mechanisms = []mechanism{
	{"SCRAM-SHA-256", 1, sha256.New},
	{"SCRAM-SHA-512", 2, sha512.New},
}

// The limits and the default of iterations, of both mechanisms.
const (
	minIterations     = 4096
	maxIterations     = 16384
	defaultIterations = 4096
	saltBytes         = 24
)

// credential is one --add-scram.
type credential struct {
	mechanism      mechanism
	name           string
	password       string
	hasPassword    bool
	salt           []byte
	saltedPassword []byte
	iterations     int
}

// parseScram reads the values of --add-scram, as SCRAM-SHA-256=[name=alice,password=secret] (ScramParser.java).
func parseScram(texts []string, version metadata.MetadataVersion, random func() uint64) ([]credential, error) {
	if len(texts) > 0 && !version.SupportsScram() {
		return nil, fmt.Errorf("--add-scram needs a newer metadata.version than %s", version)
	}
	var credentials []credential
	for _, text := range texts {
		c, err := parseCredential(text)
		if err != nil {
			return nil, fmt.Errorf("--add-scram: %w", err) // never with the text: it holds a password
		}
		if c.salt == nil {
			for range saltBytes / 8 {
				c.salt = binary.BigEndian.AppendUint64(c.salt, random())
			}
		}
		if c.saltedPassword == nil {
			c.saltedPassword, err = pbkdf2.Key(c.mechanism.hash, c.password, c.salt, c.iterations, c.mechanism.hash().Size())
			if err != nil {
				return nil, fmt.Errorf("--add-scram: cannot salt the password of %s: %w", c.name, err)
			}
		}
		credentials = append(credentials, c)
	}
	return credentials, nil
}

func parseCredential(text string) (credential, error) {
	c := credential{iterations: defaultIterations}
	name, fields, ok := strings.Cut(strings.TrimSpace(text), "=")
	if !ok {
		return c, errors.New("the form is MECHANISM=[name=…,password=…]")
	}
	for _, m := range mechanisms {
		if m.name == name {
			c.mechanism = m
		}
	}
	if c.mechanism.hash == nil {
		return c, fmt.Errorf("there is no mechanism %q, only SCRAM-SHA-256 and SCRAM-SHA-512", name)
	}
	inner, opened := strings.CutPrefix(fields, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !opened || !closed {
		return c, errors.New("what follows the mechanism must stand in [ and ]")
	}
	for _, field := range strings.Split(inner, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(field), "=")
		if !ok {
			return c, errors.New("each part must be of the form key=value")
		}
		if len(value) >= 2 && strings.HasPrefix(value, `"`) && strings.HasSuffix(value, `"`) {
			value = value[1 : len(value)-1]
		}
		if err := c.set(key, value); err != nil {
			return c, err
		}
	}
	return c, c.check()
}

func (c *credential) set(key, value string) (err error) {
	switch key {
	case "name":
		c.name = value
	case "password":
		c.password, c.hasPassword = value, true
	case "salt":
		c.salt, err = base64.StdEncoding.DecodeString(value)
	case "saltedpassword":
		c.saltedPassword, err = base64.StdEncoding.DecodeString(value)
	case "iterations":
		c.iterations, err = strconv.Atoi(value)
	default:
		return fmt.Errorf("there is no key %q", key)
	}
	if err != nil {
		return fmt.Errorf("the value of %s cannot be read", key) // without the value, it may be secret
	}
	return nil
}

func (c *credential) check() error {
	switch {
	case c.name == "":
		return errors.New("the name is missing")
	case !c.hasPassword && c.saltedPassword == nil:
		return errors.New("either password or saltedpassword is needed")
	case c.hasPassword && c.saltedPassword != nil:
		return errors.New("password and saltedpassword cannot both be given")
	case c.saltedPassword != nil && c.salt == nil:
		return errors.New("saltedpassword needs the salt")
	case c.iterations < minIterations || c.iterations > maxIterations:
		return fmt.Errorf("iterations must be from %d to %d", minIterations, maxIterations)
	}
	return nil
}

// record derives the two keys that are stored (RFC 5802).
func (c *credential) record() schema.MetadataRecord {
	r := schema.NewUserScramCredentialRecord()
	r.Name, r.Mechanism, r.Iterations, r.Salt = c.name, c.mechanism.code, int32(c.iterations), c.salt
	stored := c.mechanism.hash()
	stored.Write(c.sign("Client Key"))
	r.StoredKey, r.ServerKey = stored.Sum(nil), c.sign("Server Key")
	return r
}

func (c *credential) sign(text string) []byte {
	mac := hmac.New(c.mechanism.hash, c.saltedPassword)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
