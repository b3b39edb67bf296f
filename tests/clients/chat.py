"""usage: chat.py HOST:PORT QUESTION   Asks over gRPC, knowing nothing but what the server's reflection says."""
import sys

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

DEADLINE = 60  # seconds

address, question = sys.argv[1:]
with grpc.insecure_channel(address) as channel:
    pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))

    def method(service, name):
        """A callable for a method of the server, and the class of its request."""
        described = pool.FindServiceByName(service).FindMethodByName(name)
        request, response = GetMessageClass(described.input_type), GetMessageClass(described.output_type)
        kind = channel.unary_stream if described.server_streaming else channel.unary_unary
        call = kind(f"/{service}/{name}", request.SerializeToString, response.FromString)
        return lambda **fields: call(request(**fields), timeout=DEADLINE)

    health = method("grpc.health.v1.Health", "Check")(service="sleuth.agent.v1.Agent")
    print("health:", health.ServingStatus.Name(health.status))
    for event in method("sleuth.agent.v1.Agent", "Chat")(question=question):
        kind = event.WhichOneof("kind")
        print(event.position, kind)
        if kind == "run_finished":
            print("answer:", event.run_finished.answer)
