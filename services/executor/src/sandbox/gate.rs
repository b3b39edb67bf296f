//! The one port that a command without network reaches: bound within, served from outside.
//!
//! A socket stays in the network namespace in which it was made. So the launcher binds it and passes it out, and
//! nothing has to forward bytes.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    net::{Ipv4Addr, TcpListener},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, send, sendmsg, socket_with,
};

/// Brings up the loopback device of a new network namespace.
pub(super) fn loopback_up() -> io::Result<()> {
    // Protocol 0 of netlink is its routes and devices.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, &up_request(), SendFlags::empty())?;
    let mut answer = [0; 64];
    let (read, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    // An acknowledgement: a header of 16 bytes, and the error, which is zero for success.
    match answer[..read].get(16..20).and_then(|error| error.try_into().ok()).map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// `RTM_NEWLINK` for device 1, which is the loopback in each namespace: set `IFF_UP`.
fn up_request() -> [u8; 32] {
    const RTM_NEWLINK: u16 = 16;
    const REQUEST_WITH_ACK: u16 = 1 | 4;
    const UP: u32 = 1;
    let mut message = [0; 32];
    message[0..4].copy_from_slice(&32_u32.to_ne_bytes());
    message[4..6].copy_from_slice(&RTM_NEWLINK.to_ne_bytes());
    message[6..8].copy_from_slice(&REQUEST_WITH_ACK.to_ne_bytes());
    message[20..24].copy_from_slice(&1_u32.to_ne_bytes());
    message[24..28].copy_from_slice(&UP.to_ne_bytes());
    message[28..32].copy_from_slice(&UP.to_ne_bytes());
    message
}

/// Binds the port here and passes its socket to the other end of `control`.
pub(super) fn pass(port: u16, control: &UnixStream) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let fds = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(control, &[IoSlice::new(b"\n")], &mut ancillary, SendFlags::empty())?;
    Ok(())
}

/// The socket that a launcher passes out, if its first byte brings one.
pub(crate) fn receive(control: impl AsFd) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    // One byte at most: what follows is the report.
    recvmsg(control, &mut [IoSliceMut::new(&mut [0])], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut passed = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok(passed.next())
}
