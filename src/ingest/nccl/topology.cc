#include "ingest/nccl/topology.h"

#include <expat.h>

#include <memory>
#include <string>

#include "ingest/nccl/words.h"

namespace lockstep::ingest {
namespace {

using evidence::NcclGraph;
using evidence::NcclGraphs;
using evidence::NcclTopology;
using evidence::TopologyNode;

constexpr size_t kByteLimit = size_t{16} << 20;
constexpr size_t kNodeLimit = 200'000;
constexpr size_t kDepthLimit = 32;
constexpr size_t kAttributeLimit = 32;        // NCCL's own: 16.
constexpr size_t kAttributeTextLimit = 1024;  // NCCL's own: 255.

/// Expat's handlers fill this. They may not throw through C: what they do allocates little, and bad_alloc ends us.
struct XmlTree {
  XML_Parser parser = nullptr;
  std::vector<TopologyNode> nodes;
  std::vector<int32_t> open;
  std::optional<Error> error;

  void Stop(ErrorCode code, std::string message) {
    if (!error) error = Error{.code = code, .message = std::move(message)};
    XML_StopParser(parser, XML_FALSE);
  }
};

void OnStart(void* data, const XML_Char* name, const XML_Char** attributes) {
  auto& tree = *static_cast<XmlTree*>(data);
  if (tree.nodes.size() >= kNodeLimit || tree.open.size() >= kDepthLimit) {
    return tree.Stop(ErrorCode::kLimitExceeded, "more elements or levels than a machine's topology has");
  }
  const auto idx = static_cast<int32_t>(tree.nodes.size());
  TopologyNode& node = tree.nodes.emplace_back();
  node.kind = std::string_view(name).substr(0, kAttributeTextLimit);
  node.line = XML_GetCurrentLineNumber(tree.parser);
  for (size_t i = 0; attributes[2 * i] != nullptr && i < kAttributeLimit; ++i) {
    node.attributes.emplace_back(std::string_view(attributes[2 * i]).substr(0, kAttributeTextLimit),
                                 std::string_view(attributes[2 * i + 1]).substr(0, kAttributeTextLimit));
  }
  if (!tree.open.empty()) {
    node.parent = tree.open.back();
    tree.nodes[static_cast<size_t>(tree.open.back())].children.push_back(idx);
  }
  tree.open.push_back(idx);
}

void OnEnd(void* data, const XML_Char*) {
  auto& tree = *static_cast<XmlTree*>(data);
  if (!tree.open.empty()) tree.open.pop_back();
}

/// Entities come only with a document type, which NCCL never writes.
void OnDocumentType(void* data, const XML_Char*, const XML_Char*, const XML_Char*, int) {
  static_cast<XmlTree*>(data)->Stop(ErrorCode::kUnsupported, "has a document type, which no file of NCCL's has");
}

Result<std::vector<TopologyNode>> ReadXml(std::string_view text, std::string_view root) {
  if (text.size() > kByteLimit) return Error{ErrorCode::kLimitExceeded, "a topology above 16 MiB is not read"};
  const std::unique_ptr<XML_ParserStruct, void (*)(XML_Parser)> parser(XML_ParserCreate(nullptr), XML_ParserFree);
  if (parser == nullptr) return Error{ErrorCode::kLimitExceeded, "no memory for reading XML"};
  XmlTree tree{.parser = parser.get(), .nodes = {}, .open = {}, .error = {}};
  XML_SetUserData(parser.get(), &tree);
  XML_SetElementHandler(parser.get(), OnStart, OnEnd);
  XML_SetStartDoctypeDeclHandler(parser.get(), OnDocumentType);
  const XML_Status status = XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE);
  if (tree.error) return *tree.error;
  if (status != XML_STATUS_OK) {
    return Error{.code = ErrorCode::kCorruptData,
                 .message = std::string("no sound XML, line ") +
                            std::to_string(XML_GetCurrentLineNumber(parser.get())) + ": " +
                            XML_ErrorString(XML_GetErrorCode(parser.get())),
                 .byte_offset = static_cast<uint64_t>(std::max<XML_Index>(XML_GetCurrentByteIndex(parser.get()), 0))};
  }
  if (tree.nodes.empty() || tree.nodes[0].kind != root) {
    return Error{ErrorCode::kUnsupported, "XML of another kind: its root is not <" + std::string(root) + ">"};
  }
  return std::move(tree.nodes);
}

bool HeadHas(std::string_view head, std::string_view element) {
  head = head.substr(0, size_t{64} << 10);
  const size_t first = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return first != std::string_view::npos && head[first] == '<' && head.find(element) != std::string_view::npos;
}

int32_t NumberOf(const TopologyNode& node, std::string_view name) {
  Words words(node.Get(name));
  return ToInt32(words.TakeNumber()).value_or(-1);
}

}  // namespace

bool LooksLikeNcclTopology(std::string_view head) {
  return HeadHas(head, "<system") && (HeadHas(head, "<cpu") || HeadHas(head, "<pci"));
}
bool LooksLikeNcclGraphs(std::string_view head) { return HeadHas(head, "<graphs"); }

Result<NcclTopology> ReadNcclTopology(std::string_view text, std::string_view file_name) {
  NcclTopology topology;
  topology.file = file_name;
  Result<std::vector<TopologyNode>> nodes = ReadXml(text, "system");
  if (!nodes) {
    Error error = std::move(nodes).error();
    error.file = file_name;
    return error;
  }
  topology.nodes = std::move(*nodes);
  return topology;
}

Result<NcclGraphs> ReadNcclGraphs(std::string_view text, std::string_view file_name) {
  NcclGraphs result;
  result.file = file_name;
  Result<std::vector<TopologyNode>> nodes = ReadXml(text, "graphs");
  if (!nodes) {
    Error error = std::move(nodes).error();
    error.file = file_name;
    return error;
  }
  for (const int32_t child : (*nodes)[0].children) {
    const TopologyNode& node = (*nodes)[static_cast<size_t>(child)];
    if (node.kind != "graph") continue;
    NcclGraph& graph = result.graphs.emplace_back();
    graph.id = NumberOf(node, "id");
    graph.channel_count = std::max(NumberOf(node, "nchannels"), 0);
    graph.speed_intra = node.Get("speedintra");
    graph.speed_inter = node.Get("speedinter");
    graph.type_intra = node.Get("typeintra");
    graph.type_inter = node.Get("typeinter");
    for (const int32_t idx : node.children) {
      const TopologyNode& channel = (*nodes)[static_cast<size_t>(idx)];
      if (channel.kind != "channel") continue;
      std::vector<std::string>& stops = graph.channels.emplace_back();
      for (const int32_t stop : channel.children) {
        const TopologyNode& device = (*nodes)[static_cast<size_t>(stop)];
        stops.push_back(device.kind + " " + std::string(device.Get("dev")));
      }
    }
  }
  return result;
}

}  // namespace lockstep::ingest
