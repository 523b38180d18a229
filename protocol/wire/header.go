package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/protocol"
)

// RequestHeader is what stands before a request's body: header version 1, or 2
// (with tagged fields, which are skipped) where the API version is flexible.
type RequestHeader struct {
	Key           protocol.APIKey
	Version       int16
	CorrelationID int32
	ClientID      *string // nil is legal
}

// LengthBytes is the size of the length before every message.
const LengthBytes = 4

// isFlexible tells whether a version of an API has the compact encoding, and so
// request header 2 and (but for ApiVersions) response header 1.
func isFlexible(key protocol.APIKey, version int16) bool {
	api := protocol.APIOf(key)
	return api != nil && api.Flexible >= 0 && version >= api.Flexible
}

// PeekRequest reads key, version and correlation id, the first eight bytes of
// every request, so that a reader can choose how to hold the rest. ok is false
// if they are not there.
func PeekRequest(prefix []byte) (h RequestHeader, ok bool) {
	if len(prefix) < 8 {
		return h, false
	}
	h.Key = protocol.APIKey(binary.BigEndian.Uint16(prefix))
	h.Version = int16(binary.BigEndian.Uint16(prefix[2:]))
	h.CorrelationID = int32(binary.BigEndian.Uint32(prefix[4:]))
	return h, true
}

// ReadRequestHeader reads the header of a frame (without its 4-byte length) and
// gives the bytes after it, which alias the frame. For an unknown key the error
// says ErrUnknownAPI, for a version that Apache Kafka 4.4.0 has not,
// ErrUnsupportedVersion; h is then valid as far as it could be read, and body is
// nil (ApiVersions is answered all the same, KIP-511).
func ReadRequestHeader(frame []byte) (h RequestHeader, body []byte, err error) {
	h, ok := PeekRequest(frame)
	if !ok {
		return h, nil, fmt.Errorf("%w: a request of %d bytes has no header", ErrMalformed, len(frame))
	}
	api := protocol.APIOf(h.Key)
	if api == nil {
		return h, nil, fmt.Errorf("%w: %d", ErrUnknownAPI, int16(h.Key))
	}
	rest := frame[8:]
	if len(rest) < 2 {
		return h, nil, fmt.Errorf("%w: a request header without client id", ErrMalformed)
	}
	size := int(int16(binary.BigEndian.Uint16(rest)))
	rest = rest[2:]
	switch {
	case size > len(rest):
		return h, nil, fmt.Errorf("%w: a client id of %d bytes in %d", ErrMalformed, size, len(rest))
	case size >= 0: // any negative length is null, as Apache Kafka reads it
		clientID := string(rest[:size])
		h.ClientID, rest = &clientID, rest[size:]
	}
	if isFlexible(h.Key, h.Version) {
		if rest, err = skipTags(rest); err != nil {
			return h, nil, err
		}
	}
	if h.Version < api.MinVersion || h.Version > api.MaxVersion {
		return h, nil, fmt.Errorf("%w: %s %d", ErrUnsupportedVersion, api.Name, h.Version)
	}
	return h, rest, nil
}

// skipTags passes over the tagged fields of a header.
func skipTags(src []byte) ([]byte, error) {
	g := guard{src: src, left: 1 << 62}
	g.tags(&layout{})
	return g.src, g.err
}

// DecodeRequest decodes a request's body as h says. Byte fields alias body;
// strings are copies. It allocates at most 64 × len(body) + 64 KiB, whatever the
// bytes, and fails with ErrMalformed, ErrTooLarge, ErrUnknownAPI or
// ErrUnsupportedVersion in the chain. Bytes after the message are ignored, as
// Apache Kafka does.
func DecodeRequest(h RequestHeader, body []byte) (kmsg.Request, error) {
	l, err := layoutFor(layoutKey{h.Key, false, h.Version})
	if err != nil {
		return nil, err
	}
	if err := checkBody(l, body); err != nil {
		return nil, fmt.Errorf("a %s %d request: %w", h.Key, h.Version, err)
	}
	req := kmsg.RequestForKey(int16(h.Key))
	req.SetVersion(h.Version)
	if err := req.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("%w: a %s %d request: %w", ErrMalformed, h.Key, h.Version, err)
	}
	GateRequestTags(req)
	return req, nil
}

func layoutFor(k layoutKey) (*layout, error) {
	if l := layoutOf(k); l != nil {
		return l, nil
	}
	if protocol.APIOf(k.key) == nil {
		return nil, fmt.Errorf("%w: %d", ErrUnknownAPI, int16(k.key))
	}
	return nil, fmt.Errorf("%w: %s %d", ErrUnsupportedVersion, k.key, k.version)
}

// AppendRequest appends a whole request with its 4-byte length. The key and
// version of the header are those of req; h gives the correlation and client id.
// Tagged fields that the version lacks are cleared in req first.
func AppendRequest(dst []byte, h RequestHeader, req kmsg.Request) []byte {
	GateRequestTags(req)
	key, version := protocol.APIKey(req.Key()), req.GetVersion()
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(key))
	dst = binary.BigEndian.AppendUint16(dst, uint16(version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.CorrelationID))
	if h.ClientID == nil {
		dst = append(dst, 0xff, 0xff)
	} else {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(*h.ClientID)))
		dst = append(dst, *h.ClientID...)
	}
	if isFlexible(key, version) {
		dst = append(dst, 0)
	}
	dst = req.AppendTo(dst)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-LengthBytes))
	return dst
}

// ReadResponse decodes the response to req out of a frame (without its 4-byte
// length). Byte fields alias the frame. Bounded as DecodeRequest is. The
// correlation id is valid if the frame has four bytes, even with an error.
func ReadResponse(frame []byte, req kmsg.Request) (correlationID int32, resp kmsg.Response, err error) {
	if len(frame) < 4 {
		return 0, nil, fmt.Errorf("%w: a response of %d bytes has no header", ErrMalformed, len(frame))
	}
	correlationID = int32(binary.BigEndian.Uint32(frame))
	key, version := protocol.APIKey(req.Key()), req.GetVersion()
	l, err := layoutFor(layoutKey{key, true, version})
	if err != nil {
		return correlationID, nil, err
	}
	body := frame[4:]
	if hasResponseTags(key, version) {
		if body, err = skipTags(body); err != nil {
			return correlationID, nil, fmt.Errorf("the header of a %s %d response: %w", key, version, err)
		}
	}
	if err := checkBody(l, body); err != nil {
		return correlationID, nil, fmt.Errorf("a %s %d response: %w", key, version, err)
	}
	resp = req.ResponseKind()
	resp.SetVersion(version)
	if err := resp.ReadFrom(body); err != nil {
		return correlationID, nil, fmt.Errorf("%w: a %s %d response: %w", ErrMalformed, key, version, err)
	}
	GateTags(resp)
	return correlationID, resp, nil
}

// hasResponseTags tells whether the response header is version 1, which ends in
// tagged fields. ApiVersions never has them: a client must be able to read the
// header before it knows what the server speaks (KIP-511).
func hasResponseTags(key protocol.APIKey, version int16) bool {
	return key != protocol.ApiVersions && isFlexible(key, version)
}

// AppendResponse appends a whole response with its 4-byte length: header version
// 1 where the version is flexible, else 0, and for ApiVersions always 0. Tagged
// fields that the version lacks are cleared in resp first.
func AppendResponse(dst []byte, correlationID int32, resp kmsg.Response) []byte {
	GateTags(resp)
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = appendResponseHeader(dst, correlationID, protocol.APIKey(resp.Key()), resp.GetVersion())
	dst = resp.AppendTo(dst)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-LengthBytes))
	return dst
}

func appendResponseHeader(dst []byte, correlationID int32, key protocol.APIKey, version int16) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlationID))
	if hasResponseTags(key, version) {
		dst = append(dst, 0)
	}
	return dst
}
