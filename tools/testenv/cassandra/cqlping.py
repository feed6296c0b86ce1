#!/usr/bin/env python3
"""Ask a Cassandra server one counting question over CQL, without a driver.

    cqlping.py HOST PORT [CONSISTENCY [QUERY]]

QUERY must answer one row of one bigint column (a count); it is printed.
Credentials come from CQLPING_USER and CQLPING_PASSWORD.  The exit status is 0
when the server answered, 1 when it refused or could not be reached.
"""

import os
import socket
import struct
import sys

LEVELS = {"ONE": 1, "QUORUM": 4, "ALL": 5, "LOCAL_QUORUM": 6}
STARTUP, READY, AUTHENTICATE, QUERY, AUTH_RESPONSE, AUTH_SUCCESS, ERROR, RESULT = (
    0x01,
    0x02,
    0x03,
    0x07,
    0x0F,
    0x10,
    0x00,
    0x08,
)


def string(text):
    data = text.encode()
    return struct.pack(">H", len(data)) + data


class Link:
    def __init__(self, host, port, timeout):
        self.sock = socket.create_connection((host, port), timeout)
        self.sock.settimeout(timeout)

    def read(self, count):
        data = b""
        while len(data) < count:
            piece = self.sock.recv(count - len(data))
            if not piece:
                raise OSError("connection closed by the server")
            data += piece
        return data

    def ask(self, opcode, body):
        self.sock.sendall(struct.pack(">BBhBI", 4, 0, 0, opcode, len(body)) + body)
        _, flags, _, answer, length = struct.unpack(">BBhBI", self.read(9))
        body = self.read(length)
        if flags & 0x08:  # warnings come before the body proper
            number, body = struct.unpack(">H", body[:2])[0], body[2:]
            for _ in range(number):
                body = body[2 + struct.unpack(">H", body[:2])[0] :]
        if answer == ERROR:
            code, size = struct.unpack(">iH", body[:6])
            raise OSError(f"error 0x{code:04x}: {body[6 : 6 + size].decode()}")
        return answer, body


def count(host, port, level="ONE", query="SELECT count(*) FROM system.local", timeout=10):
    link = Link(host, port, timeout)
    try:
        answer, _ = link.ask(STARTUP, struct.pack(">H", 1) + string("CQL_VERSION") + string("3.0.0"))
        if answer == AUTHENTICATE:
            token = "\0".join(("", os.environ.get("CQLPING_USER", ""), os.environ.get("CQLPING_PASSWORD", "")))
            data = token.encode()
            answer, _ = link.ask(AUTH_RESPONSE, struct.pack(">i", len(data)) + data)
        if answer not in (READY, AUTH_SUCCESS):
            raise OSError(f"unexpected answer 0x{answer:02x}")
        data = query.encode()
        answer, body = link.ask(QUERY, struct.pack(">I", len(data)) + data + struct.pack(">HB", LEVELS[level], 0))
        if answer != RESULT:
            raise OSError(f"unexpected answer 0x{answer:02x}")
        return struct.unpack(">q", body[-8:])[0]
    finally:
        link.sock.close()


if __name__ == "__main__":
    try:
        print(count(sys.argv[1], int(sys.argv[2]), *sys.argv[3:5]))
    except OSError as problem:
        print(f"{sys.argv[1]}:{sys.argv[2]}: {problem}", file=sys.stderr)
        sys.exit(1)
