package wire

import (
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

// ReadRequestHeader reads the header of a frame (without its 4-byte length) and
// gives the bytes after it, which alias the frame. The key and version need not
// be known: a header of an unknown key or of a version beyond Apache Kafka's is
// read as far as it can be, with a nil body, and the error says ErrUnknownAPI or
// ErrUnsupportedVersion; h is then valid (ApiVersions is answered even so).
func ReadRequestHeader(frame []byte) (h RequestHeader, body []byte, err error) {
	panic("later")
}

// DecodeRequest decodes a request's body as h says. Byte fields alias body;
// strings are copies. It allocates at most 64 × len(body) + 64 KiB, whatever the
// bytes, and fails with ErrMalformed, ErrTooLarge, ErrUnknownAPI or
// ErrUnsupportedVersion in the chain.
func DecodeRequest(h RequestHeader, body []byte) (kmsg.Request, error) { panic("later") }

// AppendRequest appends a whole request with its 4-byte length. The key and
// version of the header are those of req; h gives the correlation and client id.
// Tagged fields that the version lacks are cleared in req first.
func AppendRequest(dst []byte, h RequestHeader, req kmsg.Request) []byte { panic("later") }

// ReadResponse decodes the response to req out of a frame (without its 4-byte
// length). Byte fields alias the frame. Bounded as DecodeRequest is.
func ReadResponse(frame []byte, req kmsg.Request) (correlationID int32, resp kmsg.Response, err error) {
	panic("later")
}

// AppendResponse appends a whole response with its 4-byte length: header version
// 1 where the version is flexible, else 0, and for ApiVersions always 0. Tagged
// fields that the version lacks are cleared in resp first.
func AppendResponse(dst []byte, correlationID int32, resp kmsg.Response) []byte { panic("later") }

// GateTags clears the tagged fields of resp that its version does not have, as
// kmsg would write them and the Java client would die of them.
func GateTags(resp kmsg.Response) { panic("later") }

// GateRequestTags does for a request what GateTags does for a response.
func GateRequestTags(req kmsg.Request) { panic("later") }
