// The program of an operator's host code: tells what is registered, and tiles one call.
//
//   PROGRAM CHIP describe        definitions, tiling structures
//   PROGRAM CHIP tile REQUEST    what the tiling function decides for the call that REQUEST describes
//   PROGRAM CHIP shapes REQUEST  the shapes of its outputs, as the shape function says
//
// Answers are one JSON object on the last line of standard output. REQUEST has a line for each fact:
//   type NAME
//   input | output               begins a parameter, whose tensors follow
//   tensor TYPE FORMAT RANK SIZE... FILE      FILE holds its elements, - where they are not on the host
//   attribute KIND VALUE...      int, float, bool, string (as hexadecimal digits), list_int N VALUE..., none
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include "ascendc/host_api/tiling/template_argument.h"
#include "chip.h"
#include "host/operator_registry.h"

namespace {

using namespace evokernel::twin::op;  // NOLINT: one program

constexpr size_t kTilingCapacity = 64 * 1024;

std::string Quoted(const std::string &text)
{
    std::string quoted = "\"";
    for (const char letter : text) {
        if (letter == '"' || letter == '\\') {
            quoted += '\\';
        }
        quoted += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
    }
    return quoted + "\"";
}

template <typename Items, typename Write>
std::string List(const Items &items, Write write)
{
    std::string text = "[";
    for (const auto &element : items) {
        text += (text.size() > 1 ? ", " : "") + write(element);
    }
    return text + "]";
}

std::string Text(const ops::OpParamDef &parameter)
{
    static const char *const kinds[] = {"ignore", "optional", "required", "dynamic", "virtual"};
    const auto number = [](auto value) { return std::to_string(static_cast<int>(value)); };
    return "{\"name\": " + Quoted(parameter.name_) + ", \"kind\": " + Quoted(kinds[parameter.kind_]) +
           ", \"types\": " + List(parameter.types_, number) + ", \"formats\": " + List(parameter.formats_, number) +
           ", \"follows\": " + Quoted(parameter.follows_) + ", \"reads_values\": " +
           (parameter.reads_values_ ? "true" : "false") + ", \"initial\": " +
           (parameter.has_initial_ ? std::to_string(parameter.initial_) : "null") + "}";
}

struct ValueText {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(int64_t value) const { return std::to_string(value); }
    std::string operator()(float value) const
    {
        std::ostringstream text;
        text.precision(9);
        text << value;
        return text.str();
    }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(uint8_t value) const { return value != 0 ? "true" : "false"; }
    std::string operator()(const std::string &value) const { return Quoted(value); }
    template <typename T>
    std::string operator()(const std::vector<T> &values) const
    {
        return List(values, *this);
    }
};

std::string Text(const ops::OpAttrDef &attribute)
{
    return "{\"name\": " + Quoted(attribute.name_) + ", \"kind\": " + Quoted(attribute.kind_) +
           ", \"required\": " + (attribute.required_ ? "true" : "false") + ", \"value\": " +
           std::visit(ValueText{}, attribute.value_) + "}";
}

std::string Text(ops::OpDef &operation)
{
    const auto text = [](const auto &element) { return Text(element); };
    const auto &configs = operation.AICore().configs_;
    return "{\"type\": " + Quoted(operation.type_) + ", \"inputs\": " + List(operation.inputs_, text) +
           ", \"outputs\": " + List(operation.outputs_, text) + ", \"attributes\": " +
           List(operation.attributes_, text) + ", \"chips\": " + List(configs, [text](const auto &entry) {
               return "{\"name\": " + Quoted(entry.first) + ", \"inputs\": " + List(entry.second.inputs_, text) +
                      ", \"outputs\": " + List(entry.second.outputs_, text) + "}";
           }) + "}";
}

std::string Text(const evokernel::twin::TemplateOf &choice)
{
    const auto number = [](uint64_t value) { return std::to_string(value); };
    return "{\"name\": " + Quoted(choice.name) + ", \"first_key\": " + number(choice.first_key) +
           ", \"parameters\": " + List(choice.parameters, [number](const auto &parameter) {
               return "[" + number(parameter.kind) + ", " + number(parameter.bits) + ", " +
                      List(parameter.values, number) + "]";
           }) + "}";
}

int Describe()
{
    std::vector<std::unique_ptr<ops::OpDef>> operations;
    for (const auto &[type, create] : Creators()) {
        operations.emplace_back(create(type.c_str()));
    }
    const auto structure = [](const Layout &layout) {
        return "{\"name\": " + Quoted(layout.name) + ", \"fields\": " + List(layout.fields, [](const FieldOf &field) {
            return "[" + Quoted(field.type) + ", " + Quoted(field.name) + ", " + std::to_string(field.count) + "]";
        }) + "}";
    };
    const auto known = [](const auto &element) { return Text(element); };
    const auto pair = [](const auto &entry) { return "[" + Quoted(entry.first) + ", " + Quoted(entry.second) + "]"; };
    std::cout << "\n{\"operators\": " << List(operations, [](const auto &element) { return Text(*element); })
              << ", \"structures\": " << List(Layouts(), structure) << ", \"tilings\": " << List(Tilings(), pair)
              << ", \"templates\": " << List(evokernel::twin::Templates(), known)
              << ", \"reads_values\": " << List(FunctionsOf(), [](const auto &entry) {
                     const auto number = [](int32_t index) { return std::to_string(index); };
                     return "[" + Quoted(entry.first) + ", " + List(entry.second.reads_values, number) + "]";
                 })
              << "}" << std::endl;
    return 0;
}

template <typename T>
std::vector<T> Numbers(std::istream &line)
{
    size_t count = 0;
    line >> count;
    std::vector<T> numbers(count);
    for (T &number : numbers) {
        double value = 0;
        int64_t whole = 0;
        if constexpr (std::is_floating_point_v<T>) {
            line >> value;
            number = static_cast<T>(value);
        } else {
            line >> whole;
            number = static_cast<T>(whole);
        }
    }
    return numbers;
}

Value Attribute(std::istream &line)
{
    std::string kind;
    line >> kind;
    if (kind == "int") {
        int64_t value = 0;
        line >> value;
        return value;
    }
    if (kind == "float") {
        float value = 0;
        line >> value;
        return value;
    }
    if (kind == "bool") {
        int value = 0;
        line >> value;
        return value != 0;
    }
    if (kind == "string") {
        std::string digits, text;
        line >> digits;
        for (size_t i = 0; i + 1 < digits.size(); i += 2) {
            text += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
        }
        return text;
    }
    if (kind == "list_int") {
        return Numbers<int64_t>(line);
    }
    if (kind == "list_float") {
        return Numbers<float>(line);
    }
    if (kind == "list_bool") {
        return Numbers<uint8_t>(line);
    }
    if (kind == "list_list_int") {
        size_t count = 0;
        line >> count;
        std::vector<std::vector<int64_t>> lists;
        for (size_t i = 0; i < count; ++i) {
            lists.push_back(Numbers<int64_t>(line));
        }
        return lists;
    }
    return std::monostate{};
}

TensorOf *ReadTensor(std::istream &line, Node &node)
{
    int type = 0, format = 0;
    size_t rank = 0;
    line >> type >> format >> rank;
    TensorOf &tensor = node.storage.emplace_back();
    for (size_t i = 0; i < rank; ++i) {
        int64_t size = 0;
        line >> size;
        tensor.shape.MutableOriginShape().AppendDim(size);
        tensor.shape.MutableStorageShape().AppendDim(size);
    }
    const auto layout = static_cast<ge::Format>(format);
    tensor.desc = gert::CompileTimeTensorDesc(static_cast<ge::DataType>(type), {layout, layout});
    std::string file;
    line >> std::ws;
    std::getline(line, file);
    if (file != "-") {
        std::ifstream stream(file, std::ios::binary);
        tensor.bytes.assign(std::istreambuf_iterator<char>(stream), {});
    }
    tensor.tensor = gert::Tensor(tensor.shape, tensor.desc, file == "-" ? nullptr : tensor.bytes.data(), tensor.bytes.size());
    return &tensor;
}

bool ReadRequest(const char *path, Node &node)
{
    std::ifstream file(path);
    std::vector<Parameter> *parameters = &node.inputs;
    for (std::string text; std::getline(file, text);) {
        std::istringstream line(text);
        std::string word;
        line >> word;
        if (word == "type") {
            line >> node.type;
            node.name = node.type;
        } else if (word == "input" || word == "output") {
            parameters = word == "input" ? &node.inputs : &node.outputs;
            parameters->emplace_back();
        } else if (word == "tensor" && !parameters->empty()) {
            parameters->back().tensors.push_back(ReadTensor(line, node));
        } else if (word == "attribute") {
            node.attributes.push_back(Attribute(line));
        } else if (word == "deterministic") {
            node.deterministic = true;
        }
    }
    return !node.type.empty();
}

int Fail(const std::string &why)
{
    std::cout << "\n{\"error\": " << Quoted(why) << "}" << std::endl;
    return 1;
}

int Tile(const char *path)
{
    Node node;
    if (!ReadRequest(path, node)) {
        return Fail("The request names no operator.");
    }
    gert::OpImplRegisterV2::TilingKernelFunc tiling = nullptr;
    if (const auto created = Creators().find(node.type); created != Creators().end()) {
        tiling = std::unique_ptr<ops::OpDef>(created->second(node.type.c_str()))->AICore().tiling_;
    }
    const auto registered = FunctionsOf().find(node.type);
    if (registered != FunctionsOf().end() && registered->second.tiling != nullptr) {
        tiling = registered->second.tiling;
    }
    if (tiling == nullptr) {
        return Fail("No tiling function is registered for " + node.type + ".");
    }
    if (registered != FunctionsOf().end() && registered->second.parse) {
        node.compile_info = registered->second.make_compile_info();
        gert::TilingParseContext context(node);
        if (registered->second.parse(&context) != ge::GRAPH_SUCCESS) {
            return Fail("The function that prepares the tiling of " + node.type + " failed.");
        }
    }
    node.tiling.assign(kTilingCapacity, 0);
    gert::TilingContext context(node);
    if (const ge::graphStatus status = tiling(&context); status != ge::GRAPH_SUCCESS) {
        return Fail("The tiling function of " + node.type + " refused the call (status " + std::to_string(status) + ").");
    }
    std::string digits;
    for (size_t i = 0; i < node.tiling_bytes && i < node.tiling.size(); ++i) {
        constexpr char kDigits[] = "0123456789abcdef";
        digits += {kDigits[node.tiling[i] >> 4], kDigits[node.tiling[i] & 15]};
    }
    std::cout << "\n{\"tiling_key\": " << node.tiling_key << ", \"block_dim\": " << node.block_dim
              << ", \"schedule_mode\": " << node.schedule_mode << ", \"workspaces\": "
              << List(node.workspaces, [](size_t bytes) { return std::to_string(bytes); }) << ", \"tiling\": \"" << digits
              << "\"}" << std::endl;
    return 0;
}

gert::OpImplRegisterV2::InferShapeKernelFunc ShapeFunctionOf(const std::string &type)
{
    const auto registered = FunctionsOf().find(type);
    if (registered != FunctionsOf().end() && registered->second.shape != nullptr) {
        return registered->second.shape;
    }
    const auto created = Creators().find(type);
    return created == Creators().end() ? nullptr : std::unique_ptr<ops::OpDef>(created->second(type.c_str()))->shape_;
}

int Shapes(const char *path)
{
    Node node;
    if (!ReadRequest(path, node)) {
        return Fail("The request names no operator.");
    }
    const auto shapes = ShapeFunctionOf(node.type);
    if (shapes == nullptr) {
        return Fail("No shape function is registered for " + node.type + ".");
    }
    gert::InferShapeContext context(node);
    if (const ge::graphStatus status = shapes(&context); status != ge::GRAPH_SUCCESS) {
        return Fail("The shape function of " + node.type + " refused the call (status " + std::to_string(status) + ").");
    }
    const auto sizes = [](const TensorOf *tensor) {
        const gert::Shape &shape = tensor->shape.GetOriginShape();
        std::vector<int64_t> dims(shape.GetDimNum());
        for (size_t i = 0; i < dims.size(); ++i) {
            dims[i] = shape.GetDim(i);
        }
        return List(dims, [](int64_t size) { return std::to_string(size); });
    };
    std::cout << "\n{\"outputs\": "
              << List(node.outputs, [sizes](const Parameter &output) { return List(output.tensors, sizes); }) << "}"
              << std::endl;
    return 0;
}

}  // namespace

int main(int argc, char **argv)
{
    std::string error;
    if (argc < 3 || !evokernel::twin::LoadChip(argv[1], &evokernel::twin::CurrentChip(), &error)) {
        return Fail(error.empty() ? "usage: PROGRAM CHIP describe | PROGRAM CHIP tile|shapes REQUEST" : error);
    }
    const std::string task = argv[2];
    if (argc != 4) {
        return Describe();
    }
    return task == "shapes" ? Shapes(argv[3]) : Tile(argv[3]);
}
