#include "programs/python/arrow_export.h"

#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

namespace lockstep::python {
namespace {

/// What a schema points at.
struct SchemaStorage {
  std::string name;
  std::string metadata;
  std::vector<ArrowSchema> child_values;
  std::vector<ArrowSchema*> children;
  ArrowSchema dictionary = {};
};

/// What an array points at.
struct ArrayStorage {
  std::shared_ptr<const Array> values;
  std::vector<uint8_t> validity;
  std::vector<uint8_t> bits;
  std::vector<const void*> buffers;
  std::vector<ArrowArray> child_values;
  std::vector<ArrowArray*> children;
  ArrowArray dictionary = {};
};

// A consumer may have moved a child away: its release is null then.
template <typename Structure, typename Storage>
void Release(Structure* structure) {
  auto* storage = static_cast<Storage*>(structure->private_data);
  for (Structure& child : storage->child_values) {
    if (child.release != nullptr) child.release(&child);
  }
  if (storage->dictionary.release != nullptr) storage->dictionary.release(&storage->dictionary);
  delete storage;
  structure->release = nullptr;
}

/// Builds a structure's storage and frees it, children and all, should something throw on the way.
template <typename Structure, typename Storage>
class Building {
 public:
  Building() : storage_(new Storage) {}
  ~Building() {
    if (storage_ == nullptr) return;
    Structure unfinished = {};
    unfinished.private_data = storage_;
    Release<Structure, Storage>(&unfinished);
  }
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;
  Storage* operator->() { return storage_; }
  Storage* Take() { return std::exchange(storage_, nullptr); }

 private:
  Storage* storage_;
};

const char* Format(Kind kind) {
  switch (kind) {
    case Kind::kBool: return "b";
    case Kind::kInt16: return "s";
    case Kind::kInt32: return "i";
    case Kind::kInt64: return "l";
    case Kind::kUint32: return "I";
    case Kind::kFloat64: return "g";
    case Kind::kText: return "U";
    case Kind::kCategory8: return "c";
    case Kind::kCategory32: return "i";
    case Kind::kList: return "+L";
    case Kind::kStruct: return "+s";
  }
  return "n";
}

void AppendInt32(int32_t value, std::string* out) {
  char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));
  out->append(bytes, sizeof(bytes));
}

// Number of pairs, then each key and value with its length before it.
std::string UnitMetadata(const std::string& unit) {
  std::string metadata;
  if (unit.empty()) return metadata;
  AppendInt32(1, &metadata);
  for (const std::string& text : {std::string("unit"), unit}) {
    AppendInt32(static_cast<int32_t>(text.size()), &metadata);
    metadata += text;
  }
  return metadata;
}

void ExportSchema(const Field& field, const Array& values, ArrowSchema* out);

void ExportNode(const std::string& name, const std::string& unit, bool nullable, Kind kind,
                const std::vector<Field>& children, const Array* dictionary, ArrowSchema* out) {
  Building<ArrowSchema, SchemaStorage> storage;
  storage->name = name;
  storage->metadata = UnitMetadata(unit);
  storage->child_values.resize(children.size());
  for (size_t i = 0; i < children.size(); ++i) {
    ExportSchema(children[i], *children[i].values, &storage->child_values[i]);
    storage->children.push_back(&storage->child_values[i]);
  }
  if (dictionary != nullptr) {
    ExportNode("", "", false, dictionary->kind, dictionary->children, nullptr, &storage->dictionary);
  }
  SchemaStorage* taken = storage.Take();
  *out = {.format = Format(kind),
          .name = taken->name.c_str(),
          .metadata = taken->metadata.empty() ? nullptr : taken->metadata.data(),
          .flags = nullable ? kArrowNullable : 0,
          .n_children = static_cast<int64_t>(taken->children.size()),
          .children = taken->children.empty() ? nullptr : taken->children.data(),
          .dictionary = dictionary != nullptr ? &taken->dictionary : nullptr,
          .release = Release<ArrowSchema, SchemaStorage>,
          .private_data = taken};
}

void ExportSchema(const Field& field, const Array& values, ArrowSchema* out) {
  ExportNode(field.name, field.unit, field.nullable, values.kind, values.children, values.dictionary.get(), out);
}

// Bit i is set where byte i is not 0 (`inverted`: is 0); least significant bit first.
std::vector<uint8_t> PackBits(const uint8_t* bytes, size_t count, bool inverted) {
  std::vector<uint8_t> bits((count + 7) / 8);
  for (size_t i = 0; i < count; ++i) {
    if ((bytes[i] != 0) != inverted) bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | (1U << (i % 8)));
  }
  return bits;
}

// Buffers of no values must not be null pointers for every consumer: this is what they point at.
const int64_t kNothing[2] = {0, 0};
const void* OrNothing(const void* data) { return data != nullptr ? data : kNothing; }

void ExportArrayNode(std::shared_ptr<const Array> values, ArrowArray* out) {
  Building<ArrowArray, ArrayStorage> storage;
  const Array& array = *values;
  storage->values = std::move(values);
  if (array.null_count > 0) storage->validity = PackBits(array.is_null, array.length, true);
  storage->buffers.push_back(array.null_count > 0 ? storage->validity.data() : nullptr);
  switch (array.kind) {
    case Kind::kBool:
      storage->bits = PackBits(static_cast<const uint8_t*>(array.data), array.length, false);
      storage->buffers.push_back(OrNothing(storage->bits.data()));
      break;
    case Kind::kText:
      storage->buffers.push_back(OrNothing(array.offsets));
      storage->buffers.push_back(OrNothing(array.data));
      break;
    case Kind::kList: storage->buffers.push_back(OrNothing(array.offsets)); break;
    case Kind::kStruct: break;
    default: storage->buffers.push_back(OrNothing(array.data));
  }
  storage->child_values.resize(array.children.size());
  for (size_t i = 0; i < array.children.size(); ++i) {
    ExportArrayNode(array.children[i].values, &storage->child_values[i]);
    storage->children.push_back(&storage->child_values[i]);
  }
  if (array.dictionary != nullptr) ExportArrayNode(array.dictionary, &storage->dictionary);
  ArrayStorage* taken = storage.Take();
  *out = {.length = static_cast<int64_t>(array.length),
          .null_count = static_cast<int64_t>(array.null_count),
          .offset = 0,
          .n_buffers = static_cast<int64_t>(taken->buffers.size()),
          .n_children = static_cast<int64_t>(taken->children.size()),
          .buffers = taken->buffers.data(),
          .children = taken->children.empty() ? nullptr : taken->children.data(),
          .dictionary = array.dictionary != nullptr ? &taken->dictionary : nullptr,
          .release = Release<ArrowArray, ArrayStorage>,
          .private_data = taken};
}

/// A stream's tables and how many of them have been taken.
struct StreamStorage {
  std::vector<std::shared_ptr<const Table>> chunks;
  size_t next = 0;
  std::string error;
};

// Nothing may be thrown through a consumer's C code.
template <typename Body>
int Guarded(ArrowArrayStream* stream, Body body) {
  auto* storage = static_cast<StreamStorage*>(stream->private_data);
  try {
    body(storage);
    return 0;
  } catch (const std::exception& error) {
    storage->error = error.what();
    return ENOMEM;
  }
}

int StreamSchema(ArrowArrayStream* stream, ArrowSchema* out) {
  return Guarded(stream, [out](StreamStorage* storage) { ExportSchema(*storage->chunks.front(), out); });
}

int StreamNext(ArrowArrayStream* stream, ArrowArray* out) {
  return Guarded(stream, [out](StreamStorage* storage) {
    if (storage->next == storage->chunks.size()) {
      *out = {};  // A released array says that this was all.
    } else {
      ExportArray(*storage->chunks[storage->next], out);
      ++storage->next;
    }
  });
}

const char* StreamError(ArrowArrayStream* stream) {
  const auto* storage = static_cast<StreamStorage*>(stream->private_data);
  return storage->error.empty() ? nullptr : storage->error.c_str();
}

void ReleaseStream(ArrowArrayStream* stream) {
  delete static_cast<StreamStorage*>(stream->private_data);
  stream->release = nullptr;
}

}  // namespace

void ExportSchema(const Table& table, ArrowSchema* out) {
  ExportNode("", "", false, Kind::kStruct, table.columns, nullptr, out);
}

void ExportArray(const Table& table, ArrowArray* out) {
  auto record = std::make_shared<Array>();
  record->kind = Kind::kStruct;
  record->length = table.row_count;
  record->children = table.columns;
  ExportArrayNode(std::move(record), out);
}

void ExportStream(std::vector<std::shared_ptr<const Table>> chunks, ArrowArrayStream* out) {
  auto storage = std::make_unique<StreamStorage>();
  storage->chunks = std::move(chunks);
  *out = {.get_schema = StreamSchema,
          .get_next = StreamNext,
          .get_last_error = StreamError,
          .release = ReleaseStream,
          .private_data = storage.release()};
}

void ExportFieldSchema(const Field& field, ArrowSchema* out) { ExportSchema(field, *field.values, out); }
void ExportFieldArray(const Field& field, ArrowArray* out) { ExportArrayNode(field.values, out); }

}  // namespace lockstep::python
