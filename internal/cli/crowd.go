package cli

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Bounds of what clients of a loop can take: connections, and the time for a request, an answer and a pause.
const (
	mostClients  = 64
	requestTime  = 5 * time.Second
	answerTime   = 10 * time.Second
	pauseTime    = 30 * time.Second
	longestQuery = 16 << 10 // bytes of a request's header
)

// crowd is a listener of which clients cannot take more than a number of file descriptors, which the loop needs too.
// A new connection replaces the one that has waited longest without a whole request, so that no number of half requests
// keeps a client out.
type crowd struct {
	net.Listener
	mu   sync.Mutex
	open []*client // in the order in which they came
}

// client is one connection.
type client struct {
	net.Conn
	crowd  *crowd
	served int // how many of its requests are being answered
}

// Accept waits for a connection. While requests are answered on all others, it is the new one that is closed.
func (c *crowd) Accept() (net.Conn, error) {
	raw, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &client{Conn: raw, crowd: c}
	c.mu.Lock()
	c.open = append(c.open, one)
	var replaced *client
	if len(c.open) > mostClients {
		replaced = c.open[slices.IndexFunc(c.open, func(o *client) bool { return o.served == 0 })]
	}
	c.mu.Unlock()
	if replaced != nil {
		_ = replaced.Close()
	}
	return one, nil
}

// Close closes the connection, once or more often.
func (c *client) Close() error {
	c.crowd.mu.Lock()
	c.crowd.open = slices.DeleteFunc(c.crowd.open, func(o *client) bool { return o == c })
	c.crowd.mu.Unlock()
	return c.Conn.Close()
}

// serves counts the requests of a connection that are being answered.
func (c *client) serves(n int) {
	c.crowd.mu.Lock()
	defer c.crowd.mu.Unlock()
	c.served += n
}

type clientKey struct{}

// server is one for a crowd.
func server(handler http.Handler) *http.Server {
	return &http.Server{
		ReadHeaderTimeout: requestTime, ReadTimeout: requestTime, WriteTimeout: answerTime, IdleTimeout: pauseTime, MaxHeaderBytes: longestQuery,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, clientKey{}, c) },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if one, is := r.Context().Value(clientKey{}).(*client); is {
				one.serves(1)
				defer one.serves(-1)
			}
			handler.ServeHTTP(w, r)
		}),
	}
}
