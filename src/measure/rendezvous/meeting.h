#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "measure/rendezvous/job_place.h"
#include "measure/rendezvous/tcp_communicator.h"

namespace lockstep::rendezvous {

using Socket = boost::asio::ip::tcp::socket;
using SystemError = boost::system::error_code;

/// Rank 0: the others' connections, by rank - 1. Errors: see TcpCommunicator::Meet.
Result<std::vector<Socket>> Receive(boost::asio::io_context* context, const JobPlace& place,
                                    const TcpCommunicator::Limits& limits);

/// Another rank: the connection to rank 0.
Result<Socket> Visit(boost::asio::io_context* context, const JobPlace& place, const TcpCommunicator::Limits& limits);

}  // namespace lockstep::rendezvous
